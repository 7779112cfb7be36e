/** In a contender's process: reports that it is ready, and answers each request of the parent with one number. */
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
