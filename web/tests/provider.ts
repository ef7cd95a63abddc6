// A small OpenID Connect provider for tests in a browser: it logs in whoever it was told,
// and signs ID tokens with a key of its own.
import { createHash, createSign, generateKeyPairSync, randomUUID } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Provider {
  url: string
  /** Who is at the provider: the claims of the ID token. */
  person: Record<string, unknown>
  stop(): Promise<void>
}

export async function startProvider(): Promise<Provider> {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const codes = new Map<string, { nonce: string; challenge: string }>()
  const base64 = (v: unknown) => Buffer.from(JSON.stringify(v)).toString('base64url')
  const answer = (res: ServerResponse, status: number, v: unknown) =>
    res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(v))
  const server = createServer((req, res) => {
    const at = new URL(req.url!, provider.url)
    switch (at.pathname) {
      case '/.well-known/openid-configuration':
        return answer(res, 200, {
          issuer: provider.url,
          authorization_endpoint: `${provider.url}/authorize`,
          token_endpoint: `${provider.url}/token`,
          jwks_uri: `${provider.url}/keys`,
          id_token_signing_alg_values_supported: ['RS256'],
        })
      case '/keys':
        return answer(res, 200, {
          keys: [{ ...publicKey.export({ format: 'jwk' }), kid: '1', alg: 'RS256', use: 'sig' }],
        })
      case '/authorize': {
        // A login page with one button, so that the browser comes back from another site's page.
        const q = at.searchParams
        const code = randomUUID()
        codes.set(code, { nonce: q.get('nonce')!, challenge: q.get('code_challenge')! })
        const back = new URL(q.get('redirect_uri')!)
        back.searchParams.set('code', code)
        back.searchParams.set('state', q.get('state')!)
        return res
          .writeHead(200, { 'content-type': 'text/html' })
          .end(`<!doctype html><title>Lab login</title><a href="${back.href.replaceAll('&', '&amp;')}">I am Olga</a>`)
      }
      case '/token': {
        let body = ''
        req.on('data', (b: Buffer) => (body += b.toString()))
        req.on('end', () => {
          const q = new URLSearchParams(body)
          const asked = codes.get(q.get('code') ?? '')
          codes.delete(q.get('code') ?? '')
          const proof = createHash('sha256')
            .update(q.get('code_verifier') ?? '')
            .digest('base64url')
          if (!asked || proof !== asked.challenge) return answer(res, 400, { error: 'invalid_grant' })
          const now = Math.floor(Date.now() / 1000)
          const text = `${base64({ alg: 'RS256', kid: '1' })}.${base64({
            iss: provider.url,
            aud: 'linktrial',
            iat: now,
            exp: now + 300,
            nonce: asked.nonce,
            ...provider.person,
          })}`
          const signature = createSign('RSA-SHA256').update(text).sign(privateKey).toString('base64url')
          answer(res, 200, { access_token: 'x', token_type: 'Bearer', id_token: `${text}.${signature}` })
        })
        return
      }
    }
    res.writeHead(404).end()
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const provider: Provider = {
    // Another site than the orchestrator's, which is at 127.0.0.1.
    url: `http://localhost:${(server.address() as AddressInfo).port}`,
    person: {},
    stop: () =>
      new Promise((done) => {
        server.closeAllConnections()
        server.close(() => done())
      }),
  }
  return provider
}
