/* The runner's part inside of the browser: one script in its privileged context, which does the operations of a job
 * (docs/job.md) by requests and times them. run.py defines `Necko` once and calls its methods. */

const { NetUtil } = ChromeUtils.importESModule("resource://gre/modules/NetUtil.sys.mjs");

const GET = 0, SET = 1, GETSET = 5, FLUSH = 6, WAIT = 7, CLEAR = 8, LOAD = 9;
const VALUE_STEP = 61;
const WORD = 2 ** 32;
/* A piece of a body that is read at once; the browser's own buffers are smaller. */
const PIECE_BYTES = 1 << 18;
const CLEARED = "cacheservice:empty-cache";
/* How many entries are stored or verified at once: more than the connections to an origin. */
const AT_ONCE = 16;

const pause = ms => new Promise(resolve => setTimeout(resolve, ms));
const hex = status => `0x${(status >>> 0).toString(16)}`;
const channelTo = url => NetUtil.newChannel({ uri: url, loadUsingSystemPrincipal: true });

class Necko {
  /* `isOnDisk`: whether a flush has something to write. */
  constructor(isOnDisk) {
    this.isOnDisk = isOnDisk;
    // What requests without a page use. Without a cache on disk, the storage of that name is in memory.
    this.storage = Services.cache2.diskCacheStorage(Services.loadContextInfo.default);
    this.input = Cc["@mozilla.org/binaryinputstream;1"].createInstance(Ci.nsIBinaryInputStream);
    this.piece = new ArrayBuffer(PIECE_BYTES);
    this.pieceBytes = new Uint8Array(this.piece);
  }

  /* Reads a job. `origin` is the beginning of all URLs, or "inner": then a read creates its channel and no more. Of a
   * job without an origin (`isAlone`), a read looks the key up in the cache, without a request; `origin` stores. */
  async readJob(directory, origin, poolSpan, isAlone) {
    const bytes = name => IOUtils.read(PathUtils.join(directory, name));
    const words = async name => new Uint32Array((await bytes(name)).buffer);
    const [keys, ends] = [await bytes("keys.bin"), await words("keys.idx")];
    this.sizes = await words("sizes.bin");
    this.pool = await bytes("pool.bin");
    this.poolSpan = poolSpan;
    this.isInner = origin == "inner";
    this.isAlone = isAlone;
    const base = this.isInner ? "http://localhost" : origin;
    const text = new TextDecoder();
    this.urls = Array.from(this.sizes, (_, key) => {
      const name = text.decode(keys.subarray(ends[key], ends[key + 1]));
      return base + (/^https?:\/\/[^/]*(\/.*)$/.exec(name)?.[1] ?? "/" + name);
    });
    this.prepareOps = await words("prepare.ops");
    this.timedOps = await words("timed.0.ops");
    // A request would parse its URL each time; it is no part of looking a key up.
    this.uris = isAlone ? this.urls.map(url => Services.io.newURI(url)) : [];
    this.makeRoom(this.sizes.reduce((most, size) => Math.max(most, size), 0));
    this.forget();
  }

  /* A job of one URL, for the check of the settings. */
  setUrl(url, bytes) {
    this.urls = [url];
    this.sizes = [bytes];
    this.makeRoom(bytes);
    this.forget();
  }

  makeRoom(bytes) {
    const room = () => {
      const body = new Uint8Array((bytes + 7) & ~7);
      return { body, words: new Uint32Array(body.buffer) };
    };
    this.rooms = Array.from({ length: this.isAlone ? AT_ONCE : 1 }, room);
  }

  forget() {
    this.counts = { hits: 0, misses: 0, hitBytes: 0, low: 0, high: 0, errors: 0, wrong: 0, firstError: "" };
  }

  fail(text) {
    this.counts.errors++;
    this.counts.firstError ||= text;
  }

  /* Loads the URL of a key, all of its body. Returns whether the response came from the cache, and how many bytes it
   * had; `undefined` after a failure, which is counted. */
  load(key, flags, room = this.rooms[0]) {
    return new Promise(resolve => {
      const channel = channelTo(this.urls[key]);
      channel.loadFlags |= flags;
      let isHit = false;
      const began = request => {
        // Later the channel does not know it any more.
        isHit = request.status == Cr.NS_OK && request.QueryInterface(Ci.nsICacheInfoChannel).isFromCache();
      };
      channel.asyncOpen(this.reader(room, began, (request, status, size) => {
        if (status != Cr.NS_OK) {
          this.fail(`a request failed: ${hex(status)}`);
          return resolve(undefined);
        }
        const { responseStatus } = request.QueryInterface(Ci.nsIHttpChannel);
        if (responseStatus != 200) {
          this.fail(`the response to a request has the status ${responseStatus}`);
          return resolve(undefined);
        }
        return resolve({ isHit, size });
      }));
    });
  }

  /* Looks a key up in the cache, by the call of the source's benchmarks, and reads its entry. Returns how many bytes it
   * had; `undefined` where it is missing, and after a failure, which is counted. */
  find(key, room = this.rooms[0]) {
    return new Promise((resolve, reject) => {
      const read = entry => {
        const pump = Cc["@mozilla.org/network/input-stream-pump;1"].createInstance(Ci.nsIInputStreamPump);
        pump.init(entry.openInputStream(0), 0, 0, true);
        pump.asyncRead(this.reader(room, () => {}, (_request, status, size) => {
          if (status != Cr.NS_OK) {
            this.fail(`an entry cannot be read: ${hex(status)}`);
            size = undefined;
          }
          resolve(size);
        }));
      };
      this.storage.asyncOpenURI(this.uris[key], "", Ci.nsICacheStorage.OPEN_READONLY, {
        onCacheEntryCheck: () => Ci.nsICacheEntryOpenCallback.ENTRY_WANTED,
        onCacheEntryAvailable: (entry, _isNew, status) => {
          // The browser ignores what is thrown here.
          try {
            if (entry) {
              return read(entry);
            }
          } catch (error) {
            return reject(error);
          }
          if (status != Cr.NS_ERROR_CACHE_KEY_NOT_FOUND) {
            this.fail(`an entry cannot be opened: ${hex(status)}`);
          }
          return resolve(undefined);
        },
      });
    });
  }

  /* A listener that reads a body. */
  reader({ body }, began, ended) {
    const { input, piece, pieceBytes } = this;
    let at = 0;
    return {
      onStartRequest: began,
      onDataAvailable(_request, stream, _offset, count) {
        input.setInputStream(stream);
        while (count > 0) {
          const read = input.readArrayBuffer(Math.min(count, PIECE_BYTES), piece);
          if (at + read <= body.length) {
            body.set(read == PIECE_BYTES ? pieceBytes : pieceBytes.subarray(0, read), at);
          }
          at += read;
          count -= read;
        }
      },
      onStopRequest: (request, status) => ended(request, status, at),
    };
  }

  /* Reads all bytes of the body for the checksum `read_words`, and compares its length and its first 8 bytes. */
  touch(key, size) {
    const { counts } = this;
    const { body, words: bodyWords } = this.rooms[0];
    let isRight = size == this.sizes[key];
    for (let at = 0; isRight && at < Math.min(8, size); at++) {
      isRight = body[at] == (at < 4 ? (key >>> (8 * at)) & 255 : 0);
    }
    if (!isRight) {
      counts.wrong++;
      return;
    }
    let low = 0, high = 0;
    const words = (size >>> 3) * 2;
    for (let at = 0; at < words; at += 2) {
      low += bodyWords[at];
      high += bodyWords[at + 1];
    }
    for (let at = words * 4; at < size; at++) {
      low += body[at];
    }
    low += counts.low;
    counts.low = low % WORD;
    counts.high = (counts.high + high + Math.floor(low / WORD)) % WORD;
    counts.hitBytes += size;
  }

  async readAlone(key) {
    const size = await this.find(key);
    if (size === undefined) {
      this.counts.misses++;
      return;
    }
    this.counts.hits++;
    this.touch(key, size);
  }

  async read(key, flags) {
    const { counts } = this;
    const loaded = await this.load(key, flags);
    if (!loaded?.isHit) {
      counts.misses++;
      if (loaded && loaded.size != this.sizes[key]) {
        this.fail(`the origin sent a body of ${loaded.size} bytes, not of ${this.sizes[key]}`);
      }
      return;
    }
    counts.hits++;
    this.touch(key, loaded.size);
  }

  /* Does operations, and returns the counts and the time that they took, in milliseconds. */
  async perform(ops, executions) {
    const { INHIBIT_CACHING, LOAD_NORMAL } = Ci.nsIRequest;
    const before = performance.now();
    for (let execution = 0; execution < executions; execution++) {
      for (let at = 0; at < ops.length; at++) {
        const operand = ops[at] & 0xfffffff;
        switch (ops[at] >>> 28) {
          case GET:
          case GETSET:
          case LOAD:
            if (this.isInner) {
              // Nothing is waited for: this is the cost of the call alone.
              channelTo(this.urls[operand]);
              this.counts.misses++;
            } else if (this.isAlone) {
              await this.readAlone(operand);
            } else {
              await this.read(operand, ops[at] >>> 28 == LOAD ? INHIBIT_CACHING : LOAD_NORMAL);
            }
            break;
          case CLEAR:
            await this.clear();
            break;
          case FLUSH:
            await this.flush();
            break;
          case WAIT:
            await pause(operand);
            break;
          default:
            throw new Error(`unknown operation ${ops[at] >>> 28}`);
        }
      }
    }
    return { ms: performance.now() - before, ...this.counts };
  }

  async prepare() {
    if (!this.isAlone) {
      return this.perform(this.prepareOps, 1);
    }
    const keys = Array.from(this.prepareOps.filter(word => word >>> 28 == SET), word => word & 0xfffffff);
    await this.each(keys, async (key, room) => {
      const loaded = await this.load(key, Ci.nsIRequest.LOAD_BYPASS_CACHE, room);
      if (loaded && loaded.size != this.sizes[key]) {
        this.fail(`the origin sent a body of ${loaded.size} bytes, not of ${this.sizes[key]}`);
      }
    });
    await this.flush();
    return { ...this.counts };
  }

  /* Does the same for all keys, for several at once. */
  async each(keys, one) {
    let next = 0;
    const some = async room => {
      while (next < keys.length) {
        await one(keys[next++], room);
      }
    };
    await Promise.all(this.rooms.map(some));
  }

  timed(executions) {
    this.forget();
    return this.perform(this.timedOps, executions);
  }

  /* Removes all entries, and waits until the thread of the cache's files has done so. */
  clear() {
    return new Promise(resolve => {
      const observer = {
        observe() {
          Services.obs.removeObserver(observer, CLEARED);
          resolve();
        },
      };
      Services.obs.addObserver(observer, CLEARED);
      Services.cache2.clear();
    });
  }

  /* Has everything written to disk. The call empties the cache in memory, where nothing has to be written. */
  flush() {
    if (!this.isOnDisk) {
      return Promise.resolve();
    }
    return new Promise(resolve => {
      Services.cache2.QueryInterface(Ci.nsICacheTesting).flush({ observe: () => resolve() });
    });
  }

  /* Reads these keys, or all, and compares the whole of what comes from the cache; returns those that were there. */
  async verify(only) {
    const right = [];
    if (this.isInner) {
      // No request is sent that could find something: there must be nothing to find.
      const { disk, memory } = await this.storages();
      return { right, wrong: disk.count + memory.count, errors: 0, firstError: "" };
    }
    this.forget();
    await this.each(only ?? Array.from(this.urls.keys()), async (key, room) => {
      const size = this.isAlone ? await this.find(key, room) : await this.sizeOfHit(key);
      if (size === undefined) {
        return;
      }
      if (this.isWhole(key, size, room)) {
        right.push(key);
      } else {
        this.counts.wrong++;
      }
    });
    return { right, ...this.counts };
  }

  async sizeOfHit(key) {
    const loaded = await this.load(key, Ci.nsIRequest.LOAD_NORMAL);
    return loaded?.isHit ? loaded.size : undefined;
  }

  isWhole(key, size, { body }) {
    if (size != this.sizes[key]) {
      return false;
    }
    const start = (key * VALUE_STEP) % this.poolSpan;
    for (let at = 0; at < size; at++) {
      const byte = at < 4 ? (key >>> (8 * at)) & 255 : at < 8 ? 0 : this.pool[start + at];
      if (body[at] != byte) {
        return false;
      }
    }
    return true;
  }

  /* Whether the index of the files tells whether an entry is there: not before it has been read, or built anew. Each
   * question is about another key, because the storage knows those that were looked up. */
  isIndexReady() {
    try {
      this.storage.exists(Services.io.newURI(`http://localhost/index/${Math.random()}`), "");
      return true;
    } catch (error) {
      if (error.result == Cr.NS_ERROR_NOT_AVAILABLE) {
        return false;
      }
      throw error;
    }
  }

  /* What each kind of storage reports of itself and of its entries: those of requests without a page, or of a part. */
  async storages(info = Services.loadContextInfo.default) {
    const of = storage => new Promise((resolve, reject) => {
      const found = { count: 0, capacity: 0, urls: [] };
      const visitor = {
        QueryInterface: ChromeUtils.generateQI(["nsICacheStorageVisitor"]),
        onCacheStorageInfo(count, _consumption, capacity) {
          found.count = count;
          found.capacity = capacity;
        },
        onCacheEntryInfo(uri) {
          found.urls.push(uri.spec);
        },
        onCacheEntryVisitCompleted() {
          resolve(found);
        },
      };
      try {
        storage.asyncVisitStorage(visitor, true);
      } catch (error) {
        reject(error);
      }
    });
    return {
      disk: await of(Services.cache2.diskCacheStorage(info)),
      memory: await of(Services.cache2.memoryCacheStorage(info)),
    };
  }

  /* Removes the entries of a URL: those of requests without a page, or of a part. */
  removeUrl(url, info = Services.loadContextInfo.default) {
    const remove = storage => new Promise(resolve => {
      storage.asyncDoomURI(Services.io.newURI(url), "", { onCacheEntryDoomed: resolve });
    });
    return Promise.all([
      remove(Services.cache2.diskCacheStorage(info)), remove(Services.cache2.memoryCacheStorage(info)),
    ]);
  }

  /* Those of the names for which the browser has no default. */
  unknownSettings(names) {
    return names.filter(name => !Services.prefs.prefHasDefaultValue(name));
  }

  /* The settings as the browser has them, by name; `null` for those that it does not know. */
  settings(names) {
    const { prefs } = Services;
    const value = name => {
      switch (prefs.getPrefType(name)) {
        case prefs.PREF_BOOL:
          return prefs.getBoolPref(name);
        case prefs.PREF_INT:
          return prefs.getIntPref(name);
        case prefs.PREF_STRING:
          return prefs.getStringPref(name);
        default:
          return null;
      }
    };
    return Object.fromEntries(names.map(name => [name, value(name)]));
  }
}
