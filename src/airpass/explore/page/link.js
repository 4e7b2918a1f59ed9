// States in links: JSON, compressed, in URL-safe base 64.

const START = "#state=";

/** @param {Uint8Array} bytes @param {"compress" | "decompress"} way @returns {Promise<Uint8Array>} */
async function through(bytes, way) {
  const stream = way === "compress" ? new CompressionStream("deflate-raw") : new DecompressionStream("deflate-raw");
  const blob = new Blob([/** @type {any} */ (bytes)]);
  return new Uint8Array(await new Response(blob.stream().pipeThrough(stream)).arrayBuffer());
}

/** The address of this page with a state, without the token.
 * @param {import("./types.js").State} state @returns {Promise<string>} */
export async function linkTo(state) {
  const packed = await through(new TextEncoder().encode(JSON.stringify(state)), "compress");
  let text = "";
  for (const byte of packed) text += String.fromCharCode(byte);
  const plain = btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  return `${location.origin}/${START}${plain}`;
}

/** The state of this page's address, which is then removed from it; null if there is none.
 * @returns {Promise<import("./types.js").State | null>} */
export async function linkedState() {
  const { hash } = location;
  if (!hash.startsWith(START)) return null;
  history.replaceState(null, "", location.pathname + location.search);
  try {
    const text = atob(hash.slice(START.length).replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(await through(bytes, "decompress")));
  } catch {
    throw new Error("the link is damaged: copy it again");
  }
}
