// What each radio of a node carried of a transfer that used several, from the last
// state known of its protocol.
export interface Path {
  name: string // of the interface, or its address
  bytes: bigint
  share: number // 0…1
}

export function pathsOf(lastSampleJson: string): Path[] {
  if (!lastSampleJson) return []
  const { paths } = JSON.parse(lastSampleJson) as {
    paths?: { device?: string; address: string; bytes: number; share: number }[]
  }
  return (paths ?? []).map((p) => ({ name: p.device || p.address, bytes: BigInt(p.bytes), share: p.share }))
}
