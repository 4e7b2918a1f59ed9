// One WebSocket to the server: requests with answers, progress of long work, and pictures as bytes.

/** @typedef {(message: any) => void} Listener */

export class ServerError extends Error {}

export class Connection {
  constructor() {
    /** @type {WebSocket | null} */
    this.socket = null;
    this.next = 1;
    /** @type {Map<number, {resolve: Listener, reject: (error: Error) => void, progress: Listener | null}>} */
    this.waiting = new Map();
    /** @type {Set<(open: boolean) => void>} */
    this.watchers = new Set();
    /** Called when a connection that was open is lost. @type {() => void} */
    this.onLost = () => undefined;
  }

  /** Open the socket. Resolves once it is open.
   * @returns {Promise<void>} */
  open() {
    const socket = new WebSocket(`ws://${location.host}/socket`); // the cookie of the page holds the token
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    socket.onmessage = (event) => this.receive(event.data);
    return new Promise((resolve, reject) => {
      let opened = false;
      socket.onopen = () => {
        opened = true;
        this.tell(true);
        resolve();
      };
      socket.onclose = () => {
        this.tell(false);
        if (opened) this.onLost();
        for (const one of this.waiting.values()) one.reject(new ServerError("connection closed"));
        this.waiting.clear();
        reject(new ServerError("connection closed"));
      };
    });
  }

  /** @param {boolean} open */
  tell(open) {
    for (const watcher of this.watchers) watcher(open);
  }

  /** Send a request.
   * @param {string} type
   * @param {Object<string, any>} [body]
   * @param {Listener | null} [progress]  called with every message before the answer
   * @returns {{id: number, answer: Promise<any>}} */
  send(type, body = {}, progress = null) {
    const id = this.next++;
    const answer = new Promise((resolve, reject) => {
      if (this.socket === null || this.socket.readyState !== WebSocket.OPEN) {
        reject(new ServerError("connection closed"));
        return;
      }
      this.waiting.set(id, { resolve, reject, progress });
      this.socket.send(JSON.stringify({ ...body, id, type }));
    });
    return { id, answer };
  }

  /** Send a request and wait for its answer.
   * @param {string} type
   * @param {Object<string, any>} [body]
   * @returns {Promise<any>} */
  request(type, body = {}) {
    return this.send(type, body).answer;
  }

  /** End a job; its answer is then an error "cancelled".
   * @param {number} id */
  cancel(id) {
    void this.request("cancel", { job: id }).catch(() => undefined);
  }

  /** @param {string | ArrayBuffer} data */
  receive(data) {
    const binary = typeof data !== "string";
    const message = binary ? { id: new DataView(data).getUint32(0, true), type: "answer", data } : JSON.parse(data);
    const waiting = this.waiting.get(message.id);
    if (waiting === undefined) return;
    if (message.type === "progress") {
      waiting.progress?.(message);
      return;
    }
    this.waiting.delete(message.id);
    if (message.type === "error") waiting.reject(new ServerError(message.message));
    else waiting.resolve(message);
  }
}

/** Sends the newest of many requests, one at a time.
 * @template T */
export class Newest {
  /** @param {(body: T) => Promise<void>} send */
  constructor(send) {
    this.send = send;
    /** @type {T | null} */
    this.waiting = null;
    this.busy = false;
  }

  /** Send a request now, or once the one before is answered unless another has come.
   * @param {T} body */
  put(body) {
    this.waiting = body;
    if (!this.busy) void this.run();
  }

  async run() {
    this.busy = true;
    while (this.waiting !== null) {
      const body = this.waiting;
      this.waiting = null;
      await this.send(body);
    }
    this.busy = false;
  }
}
