/* The loader's part inside of the browser for lists of resources: each one is a channel, which a script in the
 * privileged context opens and reads. lists.py defines it behind necko.js, whose settings, flush and storages it has, and
 * responses.js. */

/* Announced for the target of a redirect before anything of it is requested. */
const MODIFIED = "http-on-modify-request";
const WATCH_MS = 1000;

function crc32(pieces) {
  let crc = 0xffffffff;
  for (const piece of pieces) {
    for (const byte of new Uint8Array(piece)) {
      crc = CRC_TABLE[(crc ^ byte) & 255] ^ (crc >>> 8);
    }
  }
  return (crc ^ 0xffffffff) >>> 0;
}

class Lists extends Necko {
  constructor(isOnDisk) {
    super(isOnDisk);
    // By the channel's number.
    this.responses = new Map();
    this.channels = new Set();
    // Channels for the targets of redirects.
    this.targets = new Set();
    const observer = { observe: (subject, topic) => this.noted(subject.QueryInterface(Ci.nsIHttpChannel), topic) };
    [MODIFIED, ...Object.keys(ANSWERED)].forEach(topic => Services.obs.addObserver(observer, topic));
  }

  noted(channel, topic) {
    if (topic != MODIFIED) {
      const response = this.responses.get(channel.channelId);
      if (response) {
        response.from = ANSWERED[topic];
      }
    } else if (this.targets.delete(channel)) {
      channel.cancel(Cr.NS_BINDING_ABORTED);
    }
  }

  /* Loads a list, each resource when the one that causes it has ended, and after its wait; returns what each came to.
   * `options`: whether bodies are compared (`comparesBodies`), and after which time without a byte the requests under
   * way are given up (`patienceMs`). */
  async load(loads, { comparesBodies, patienceMs }) {
    const causedBy = Map.groupBy(loads.keys(), at => loads[at].after);
    const responses = loads.map(({ url }) => (
      { url, from: null, status: 0, bytes: 0, endedAt: null, failure: null, isAlternative: false, crc32: null, pieces: [] }
    ));
    const loadCaused = after => Promise.all((causedBy.get(after) ?? []).map(async at => {
      if (loads[at].waitMs > 0) {
        await pause(loads[at].waitMs);
      }
      await this.request(responses[at], comparesBodies);
      // Those of a failed one as well: every cache is asked for the same.
      await loadCaused(at);
    }));
    const watch = setInterval(() => this.giveUp(patienceMs), WATCH_MS);
    const beganAt = performance.now();
    await loadCaused(null);
    clearInterval(watch);
    this.responses.clear();
    for (const response of responses) {
      if (comparesBodies) {
        response.crc32 = crc32(response.pieces);
      }
      delete response.pieces;
    }
    // The list has no event of its own: it is loaded with the last of the resources that it waits for.
    return { beganAt, loadedAt: beganAt, again: 0, responses };
  }

  /* Requests a resource and reads its body. */
  request(response, keepsBody) {
    return new Promise(resolve => {
      const channel = channelTo(response.url).QueryInterface(Ci.nsIHttpChannel);
      channel.notificationCallbacks = this.redirectSink(response);
      // Bodies are compared as they come.
      channel.QueryInterface(Ci.nsIEncodedChannel).applyConversion = false;
      this.responses.set(channel.channelId, response);
      this.channels.add(channel);
      this.activeAt = performance.now();
      channel.asyncOpen({
        onStartRequest: () => {
          this.activeAt = performance.now();
          if (channel.status == Cr.NS_OK && !response.isRedirect) {
            response.status = channel.responseStatus;
          }
        },
        onDataAvailable: (_request, stream, _offset, count) => {
          this.activeAt = performance.now();
          this.input.setInputStream(stream);
          response.bytes += count;
          while (count > 0) {
            const piece = keepsBody ? new ArrayBuffer(count) : this.piece;
            const read = this.input.readArrayBuffer(Math.min(count, piece.byteLength), piece);
            if (keepsBody) {
              response.pieces.push(read == count ? piece : piece.slice(0, read));
            }
            count -= read;
          }
        },
        onStopRequest: (_request, status) => {
          response.endedAt = this.activeAt = performance.now();
          response.failure = status == Cr.NS_OK || response.isRedirect ? null : hex(status);
          this.channels.delete(channel);
          resolve();
        },
      });
    });
  }

  /* Ends a redirect without a request of its target, which is a line of its own if the list has it. The redirect itself is
   * allowed: the browser would remove the entry of one that is refused. */
  redirectSink(response) {
    return {
      QueryInterface: ChromeUtils.generateQI(["nsIInterfaceRequestor", "nsIChannelEventSink"]),
      getInterface(iid) {
        return this.QueryInterface(iid);
      },
      asyncOnChannelRedirect: (from, to, flags, callback) => {
        if (!(flags & Ci.nsIChannelEventSink.REDIRECT_INTERNAL)) {
          response.status = from.QueryInterface(Ci.nsIHttpChannel).responseStatus;
          response.isRedirect = true;
          this.targets.add(to);
        }
        callback.onRedirectVerifyCallback(Cr.NS_OK);
      },
    };
  }

  giveUp(patienceMs) {
    if (this.channels.size > 0 && performance.now() - this.activeAt > patienceMs) {
      this.channels.forEach(channel => channel.cancel(Cr.NS_ERROR_NET_TIMEOUT));
    }
  }

  /* What each kind of storage holds: requests without a page have no part of their own. */
  pageStorages() {
    return this.storages();
  }

  /* Removes the entries of a URL. */
  forgetUrl(_partition, url) {
    return this.removeUrl(url);
  }
}
