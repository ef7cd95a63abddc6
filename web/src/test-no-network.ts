// Unit tests reach no server: what listens at happy-dom's address, port 3000 of this
// machine, would answer them.
globalThis.fetch = (input) => {
  const url = typeof input === 'string' ? input : input instanceof URL ? input.href : input.url
  return Promise.reject(new TypeError(`unit tests reach no server: ${url}`))
}
