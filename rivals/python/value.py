"""Keys and values of a torture (docs/torture.md): a reader of a value knows whether it is whole."""

from array import array

STEP = 0x9E3779B97F4A7C15
ONE, OTHER = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
WORD = (1 << 64) - 1
HEAD_BYTES = 24

# Filler is made a block of words at a time, each in 128 bits of one large number, where the product
# of two words has room: some twenty times as fast as word by word.
LANES = 64
EACH = sum(1 << 128 * lane for lane in range(LANES))
WORDS = EACH * WORD
STEPS = sum((STEP * (lane + 1) & WORD) << 128 * lane for lane in range(LANES))


class WrongValue(Exception):
    """A value that was read and is not one of its key, and why."""


class Draw:
    """Random numbers that follow from a seed: SplitMix64."""

    def __init__(self, seed):
        self._state = seed

    def number(self):
        """A number of 64 bits."""
        self._state = self._state + STEP & WORD
        return mix(self._state)

    def below(self, end):
        """A number below `end`."""
        return self.number() % end

    def skewed(self, end):
        """A number below `end`, small ones more often."""
        share = (self.number() >> 11) / (1 << 53)
        return int(end * share * share * share)


class Values:
    """The values of a torture, by the bounds of their lengths."""

    def __init__(self, common, longest):
        self._common, self._longest = common, longest

    def mean_bytes(self):
        """About the mean of the lengths."""
        return HEAD_BYTES + self._common // 8 + self._longest // 512

    def size(self, key, sequence):
        """The length of a value in bytes."""
        bits = mix(identity(key, sequence))
        if bits % 256 == 0:
            return HEAD_BYTES + (bits >> 16) % (self._longest + 1)
        return HEAD_BYTES + ((bits >> 16) % (self._common + 1) >> (bits >> 8) % 8)

    def make(self, key, sequence):
        """The value of a key with this sequence number."""
        size = self.size(key, sequence)
        head = b"".join(word.to_bytes(8, "little") for word in (key, sequence, size))
        return head + filler(identity(key, sequence), size - HEAD_BYTES)

    def read(self, key, value):
        """The sequence number of a value that was read; raises `WrongValue`."""
        if len(value) < HEAD_BYTES:
            raise WrongValue(f"it has {len(value)} bytes, less than any value")
        its_key, sequence, size = (int.from_bytes(value[at:at + 8], "little") for at in (0, 8, 16))
        if its_key != key:
            raise WrongValue(f"it is the value of key {its_key}")
        due = self.size(key, sequence)
        if not size == due == len(value):
            raise WrongValue(f"{sequence} has {due} bytes, its head says {size}, and it has "
                             f"{len(value)}")
        whole = self.make(key, sequence)
        if value != whole:
            at = next(at for at in range(size) if value[at] != whole[at])
            raise WrongValue(f"{sequence} is not its own from byte {at} on")
        return sequence


def key_bytes(key):
    """A key as the cache has it."""
    return b"torture:%d" % key


def mix(bits):
    """Makes bits out of bits."""
    bits = (bits ^ bits >> 30) * ONE & WORD
    bits = (bits ^ bits >> 27) * OTHER & WORD
    return bits ^ bits >> 31


def identity(key, sequence):
    """What filler follows from."""
    return mix(key) + mix(~sequence & WORD) & WORD


def filler(seed, size):
    """Returns `size` bytes that follow from a number."""
    blocks = []
    for _ in range(0, size, 8 * LANES):
        # `mix` of all words at once; what comes from the lane above is cut off.
        bits = EACH * seed + STEPS & WORDS
        bits = (bits ^ bits >> 30 & WORDS) * ONE & WORDS
        bits = (bits ^ bits >> 27 & WORDS) * OTHER & WORDS
        bits ^= bits >> 31 & WORDS
        blocks.append(array("Q", bits.to_bytes(16 * LANES, "little"))[::2].tobytes())
        seed = seed + STEP * LANES & WORD
    return b"".join(blocks)[:size]
