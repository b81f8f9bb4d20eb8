/* Shared by the scripts of pages and of lists: the kinds of responses, and the table of CRC-32. */

/* The source of a response, by the topic under which the browser announces it. One that the origin confirms is announced twice,
 * and as confirmed at last. */
const ANSWERED = {
  "http-on-examine-response": "network",
  "http-on-examine-cached-response": "cache",
  "http-on-examine-merged-response": "revalidated",
};

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) {
    value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  }
  return value;
});
