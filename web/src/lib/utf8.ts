// Text as the bytes that the API carries.

export const utf8 = (text: string) => new TextEncoder().encode(text)

export const fromUtf8 = (bytes: Uint8Array) => new TextDecoder().decode(bytes)
