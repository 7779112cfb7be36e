/** In a contender's process: says that it is ready, and answers each request of the parent by one number. */
export function answerRequests<Request>(answer: (request: Request) => number | Promise<number>): void {
  process.on('message', (request: Request) => {
    Promise.resolve(request)
      .then(answer)
      .then(
        (value) => process.send!({ value }),
        (error: unknown) => process.send!({ error: String(error) }),
      );
  });
  process.send!({ value: 0 });
}
