"""What a runner sees of the values that it reads. `make rivals-test` runs it."""

import unittest
import zlib

from measure import Reader

# Values shorter than the number of their key are among them.
VALUES = [key.to_bytes(8, "little") + bytes(range(92)) for key in range(300)]
VALUES[:4] = [VALUES[0], VALUES[1][:8], VALUES[2][:5], b""]


class ReaderTest(unittest.TestCase):
    """Touching and comparing."""

    def setUp(self):
        self.reader = Reader(VALUES, 0)

    def touch(self, key, value):
        """Touches a value; whether it was the right one, and the bytes that were counted."""
        wrong, touched = self.reader.wrong, self.reader.touched_bytes
        self.reader.touch(key, value)
        return self.reader.wrong == wrong, self.reader.touched_bytes - touched

    def test_right_values_are_touched(self):
        for key, value in enumerate(VALUES):
            self.assertEqual(self.touch(key, value), (True, len(value)))

    def test_all_bytes_are_read(self):
        # Their checksums are added up; a wrong value has none.
        checksum = 0
        for key in (0, 1, 299, 299, 3):
            self.touch(key, VALUES[key])
            self.touch(key, VALUES[key] + b"!")
            checksum += zlib.crc32(VALUES[key])
            self.assertEqual(self.reader.touched_crc32, checksum)

    def test_another_length_is_wrong(self):
        for key, value in enumerate(VALUES):
            self.assertEqual(self.touch(key, value + b"!"), (False, 0))
            if value:
                self.assertEqual(self.touch(key, value[:-1]), (False, 0))

    def test_the_value_of_another_key_is_wrong(self):
        self.assertEqual(self.touch(298, VALUES[299]), (False, 0))
        # In each of the first eight bytes; of a shorter value, in each byte.
        for key in (0, 1, 2, 299):
            for at in range(min(8, len(VALUES[key]))):
                value = bytearray(VALUES[key])
                value[at] ^= 1
                self.assertEqual(self.touch(key, bytes(value)), (False, 0))

    def test_comparing_sees_every_byte(self):
        for at in range(100):
            value = bytearray(VALUES[299])
            value[at] ^= 1
            self.reader.compare(299, bytes(value))
            self.assertEqual(self.reader.wrong, at + 1)
        self.reader.compare(299, VALUES[299])
        self.assertEqual(self.reader.wrong, 100)


if __name__ == "__main__":
    unittest.main()
