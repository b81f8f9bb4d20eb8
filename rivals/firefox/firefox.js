/* The loader's part inside of the browser: one script in its privileged context, which loads pages in a tab and notes
 * what each of their requests came to. run.py defines it behind necko.js, whose settings, flush and storages it has, and
 * responses.js. */

const OPENED = "http-on-opening-request";
/* Announced for the target of a redirect as well, and later. */
const MODIFIED = "http-on-modify-request";
/* The part of a status that says that TLS failed. */
const NS_ERROR_MODULE_SECURITY = 21;
const STOPPED = "http-on-stop-request";
const FAILED = "http-on-failed-opening-request";
const TOPICS = [OPENED, MODIFIED, ...Object.keys(ANSWERED), STOPPED, FAILED];
const NS_BINDING_REDIRECTED = 0x804b0003;
const PAUSE_MS = 10;
/* The profile of a browser that was killed may not take a certificate at first. */
const TRUST_ATTEMPTS = 500;
const EMPTIED = "haypile:emptied";

const partition = partitionKey => Services.loadContextInfo.custom(false, { partitionKey });
const systemPrincipal = () => Services.scriptSecurityManager.getSystemPrincipal();

/* What went wrong with a request, by its status; of a handshake or a certificate, in words. */
const failureOf = status => {
  const module = ((status >>> 16) & 0x1fff) - 0x45;
  if (module != NS_ERROR_MODULE_SECURITY) {
    return hex(status);
  }
  const errors = Cc["@mozilla.org/nss_errors_service;1"].getService(Ci.nsINSSErrorsService);
  return `TLS failed, ${hex(status)}: ${errors.getErrorMessage(status)}`;
};

class Pages extends Necko {
  /* Adds the certificate of an authority, DER in base64, to those of the profile; returns whether it is trusted. */
  async trust(authority) {
    const certificates = Cc["@mozilla.org/security/x509certdb;1"].getService(Ci.nsIX509CertDB);
    for (let times = 0; times < TRUST_ATTEMPTS; times++) {
      const certificate = certificates.addCertFromBase64(authority, "CT,,");
      if (certificates.isCertTrusted(certificate, Ci.nsIX509Cert.CA_CERT, Ci.nsIX509CertDB.TRUSTED_SSL)) {
        return true;
      }
      await pause(PAUSE_MS);
    }
    return false;
  }

  /* The site of a URL, by the public suffixes that the browser knows. */
  siteOf(url) {
    return Services.eTLD.getSite(Services.io.newURI(url));
  }

  /* Opens the tab, in a content process for pages of this site. */
  open(site) {
    const { gBrowser } = Services.wm.getMostRecentWindow("navigator:browser");
    const triggeringPrincipal = systemPrincipal();
    const tab = gBrowser.addTab("about:blank", { triggeringPrincipal, remoteType: `webIsolated=${site}` });
    gBrowser.selectedTab = tab;
    this.browser = tab.linkedBrowser;
    this.forgetPage([]);
    const observer = { observe: (subject, topic) => this.noted(subject, topic) };
    TOPICS.forEach(topic => Services.obs.addObserver(observer, topic));
    this.browser.addProgressListener(this.progressListener());
  }

  forgetPage(urls) {
    this.wanted = new Set(urls);
    // By URL: the first request of the page for it.
    this.responses = new Map();
    // By the channel's number, which the target of a redirect may share, and the URL: of requests that have not ended.
    this.unended = new Map();
    this.again = 0;
    this.beganAt = this.loadedAt = null;
    this.activeAt = performance.now();
  }

  /* Held by the instance, because the browser holds listeners weakly. */
  progressListener() {
    const { STATE_STOP, STATE_IS_WINDOW } = Ci.nsIWebProgressListener;
    const nothing = () => {};
    this.listener = {
      QueryInterface: ChromeUtils.generateQI(["nsIWebProgressListener", "nsISupportsWeakReference"]),
      onStateChange: (progress, _request, flags) => {
        this.activeAt = performance.now();
        if (progress.isTopLevel && flags & STATE_STOP && flags & STATE_IS_WINDOW && this.beganAt !== null) {
          this.loadedAt = performance.now();
        }
      },
      onLocationChange: nothing,
      onProgressChange: nothing,
      onStatusChange: nothing,
      onSecurityChange: nothing,
      onContentBlockingEvent: nothing,
    };
    return this.listener;
  }

  /* Notes an event of a request of the page. */
  noted(subject, topic) {
    const now = performance.now();
    const channel = subject.QueryInterface(Ci.nsIHttpChannel);
    const url = channel.URI.specIgnoringRef;
    if (!this.wanted.has(url)) {
      return;
    }
    this.activeAt = now;
    const id = `${channel.channelId} ${url}`;
    if (topic == OPENED || (topic == MODIFIED && !this.unended.has(id))) {
      this.beganAt ??= now;
      this.again += this.responses.has(url);
      const response = { url, from: null, status: 0, bytes: 0, endedAt: null, failure: null, body: null, crc32: null };
      this.unended.set(id, response);
      this.responses.set(url, this.responses.get(url) ?? response);
      return;
    }
    const response = this.unended.get(id);
    if (!response || topic == MODIFIED) {
      return;
    }
    if (topic in ANSWERED) {
      // A response that the origin confirms is announced twice, and as confirmed at last.
      response.from = ANSWERED[topic];
      response.status = channel.responseStatus;
      if (this.comparesBodies) {
        this.keepBody(channel, response);
      }
      return;
    }
    this.unended.delete(id);
    response.endedAt = now;
    response.bytes = channel.encodedBodySize;
    // The browser's own form of a script, which it has stored next to the body, is not the body.
    response.isAlternative = channel.QueryInterface(Ci.nsICacheInfoChannel).alternativeDataType != "";
    // A redirect ends so.
    if (channel.status == NS_BINDING_REDIRECTED) {
      return;
    }
    if (topic == FAILED || channel.status != Cr.NS_OK) {
      response.failure = failureOf(channel.status);
    }
  }

  /* Has the browser also write the body into a pipe, which is read after the load. */
  keepBody(channel, response) {
    if (response.body) {
      return;
    }
    const tee = Cc["@mozilla.org/network/stream-listener-tee;1"].createInstance(Ci.nsIStreamListenerTee);
    const pipe = Cc["@mozilla.org/pipe;1"].createInstance(Ci.nsIPipe);
    pipe.init(true, true, 0, 0xffffffff, null);
    tee.init(channel.QueryInterface(Ci.nsITraceableChannel).setNewListener(tee), pipe.outputStream);
    response.body = pipe;
  }

  /* Loads the page of the first URL until its load event has come and all of its URLs have been answered; returns what
   * each came to. `options`: whether the caches of the content processes keep what they have (`keepsContent`), whether
   * bodies are read (`comparesBodies`), and after which time without an event a page that lacks something is given up
   * (`patienceMs`), or is taken to have got the rest from these caches (`quietMs`). */
  async load(urls, options) {
    if (!options.keepsContent) {
      await this.emptyContentCaches();
    }
    this.comparesBodies = options.comparesBodies;
    this.forgetPage(urls);
    this.browser.loadURI(Services.io.newURI(urls[0]), { triggeringPrincipal: systemPrincipal() });
    while (!this.isOver(options)) {
      await pause(PAUSE_MS);
    }
    const responses = urls.map(url => this.responses.get(url) ?? null);
    for (const response of responses) {
      if (response?.body) {
        response.crc32 = this.crc32(response);
      }
      delete response?.body;
    }
    const { beganAt, again } = this;
    // A document that failed has no load event: that of the browser's own page about it may have come.
    const [top] = this.responses.values();
    const loadedAt = top?.failure ? null : this.loadedAt;
    this.forgetPage([]);
    return { beganAt, loadedAt, again, responses };
  }

  /* Empties the caches of images, style sheets and scripts. The content process hears of it by a message, which that of
   * a load could overtake. */
  async emptyContentCaches() {
    ChromeUtils.clearResourceCache();
    const { messageManager } = this.browser;
    await new Promise(resolve => {
      const heard = () => {
        messageManager.removeMessageListener(EMPTIED, heard);
        resolve();
      };
      messageManager.addMessageListener(EMPTIED, heard);
      messageManager.loadFrameScript(`data:,sendAsyncMessage("${EMPTIED}")`, false);
    });
  }

  isOver({ keepsContent, quietMs, patienceMs }) {
    const silence = performance.now() - this.activeAt;
    const [top] = this.responses.values();
    if (top?.failure) {
      return true;
    }
    if (this.loadedAt === null || this.unended.size > 0) {
      return silence > patienceMs;
    }
    const isWhole = this.responses.size == this.wanted.size;
    return isWhole || silence > (keepsContent ? quietMs : patienceMs);
  }

  /* The checksum of a body in a pipe; `null` where it has another length than the response: a part is missing. */
  crc32(response) {
    const { inputStream, outputStream } = response.body;
    outputStream.close();
    const { input } = this;
    input.setInputStream(inputStream);
    let crc = 0xffffffff;
    let length = 0;
    for (;;) {
      let available = 0;
      try {
        available = Math.min(inputStream.available(), PIECE_BYTES);
      } catch {
        // The pipe has ended.
      }
      if (available == 0) {
        break;
      }
      const read = input.readArrayBuffer(available, this.piece);
      for (let at = 0; at < read; at++) {
        crc = CRC_TABLE[(crc ^ this.pieceBytes[at]) & 255] ^ (crc >>> 8);
      }
      length += read;
    }
    return length == response.bytes ? (crc ^ 0xffffffff) >>> 0 : null;
  }

  /* What each kind of storage holds in the partition of pages of a site, such as (http,example.test). */
  pageStorages(partitionKey) {
    return this.storages(partition(partitionKey));
  }

  /* Removes the entries of a URL from the partition. */
  forgetUrl(partitionKey, url) {
    return this.removeUrl(url, partition(partitionKey));
  }
}
