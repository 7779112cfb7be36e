/** In a contender's process: says that it is ready, and answers each request of the parent by one number. */
export function answerRequests(answer: (request: never) => number | Promise<number>): void {
  process.on('message', (request) => {
    Promise.resolve(request as never)
      .then(answer)
      .then(
        (value) => process.send!({ value }),
        (error: unknown) => process.send!({ error: String(error) }),
      );
  });
  process.send!({ value: 0 });
}
