// Small helpers: elements, numbers as text, downloads.

/** @typedef {Node | string | null | undefined} Child */

/** Make an HTML element. Texts become text nodes, never markup.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Object<string, any>} [attributes]  onX: listeners; others: attributes; false and null are left out
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[T]} */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  set(made, attributes);
  made.append(.../** @type {(Node | string)[]} */ (children.filter((child) => child !== null && child !== undefined)));
  return made;
}

/** Make an SVG element.
 * @template {keyof SVGElementTagNameMap} T
 * @param {T} tag @param {Object<string, any>} [attributes] @param {...Child} children
 * @returns {SVGElementTagNameMap[T]} */
export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  set(made, attributes);
  made.append(.../** @type {(Node | string)[]} */ (children.filter((child) => child !== null && child !== undefined)));
  return made;
}

/** @param {Element} made @param {Object<string, any>} attributes */
function set(made, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, String(value));
  }
}

/** An element of the page that is known to exist.
 * @param {string} id @returns {any} */
export function byId(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`no element ${id}`);
  return found;
}

/** A number with some significant digits and a real minus sign; "-" for null.
 * @param {number | null | undefined} value @param {number} [digits] @returns {string} */
export function fmt(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  let text;
  if (size !== 0 && (size >= 1e5 || size < 1e-4)) {
    text = value.toExponential(digits - 1).replace(/\.?0+e/, "e").replace("e+", "e");
  } else {
    text = String(Number(value.toPrecision(digits)));
  }
  return text.replace("-", "\u2212");
}

/** A number with fixed decimals and a real minus sign.
 * @param {number | null | undefined} value @param {number} decimals @returns {string} */
export function fixed(value, decimals) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  return value.toFixed(decimals).replace("-", "\u2212");
}

/** @param {number} value @param {number} low @param {number} high */
export function clamp(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

/** Offer a file for download.
 * @param {string} name @param {BlobPart} content @param {string} type */
export function download(name, content, type) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const link = el("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

/** Copy a text; true if the browser allows it.
 * @param {string} text @returns {Promise<boolean>} */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** Call a function once per frame, however often it is asked for.
 * @param {() => void} draw @returns {() => void} */
export function perFrame(draw) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      draw();
    });
  };
}

/** Call a function when nothing has asked for it for a while.
 * @param {() => void} call @param {number} milliseconds @returns {() => void} */
export function settled(call, milliseconds) {
  /** @type {number | undefined} */
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(call, milliseconds);
  };
}
