package journal

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"sync"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum returns the crc32c of bytes, as Place has it.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// seedOf is what the checksums of a segment's records begin with. The number makes sure that what a recycled segment
// held before isn't taken for new; the store's id, which no client knows, that a body that looks like a record isn't
// taken for one.
func seedOf(store [16]byte, segment uint64) uint32 {
	var b [24]byte
	copy(b[:], store[:])
	binary.BigEndian.PutUint64(b[16:], segment)
	return crc32.Checksum(b[:], castagnoli)
}

// sums gives the checksum of any stretch of a file in logarithmic time, from the checksums of all its beginnings that
// end at a multiple of 8. Bytes that look like many long records, one inside the other, would otherwise have to be
// read once for each.
type sums struct {
	file io.ReaderAt
	from int64
	at   []uint32 // at[i]: of the bytes from `from` to from+8*i
}

// newSums reads a file from one offset to another, in pieces of the size of buf. The offsets are multiples of 8.
func newSums(file io.ReaderAt, from, to int64, buf []byte) (*sums, error) {
	s := &sums{file: file, from: from, at: make([]uint32, 0, (to-from)/8+1)}
	sum := uint32(0)
	s.at = append(s.at, sum)
	for from < to {
		piece := buf[:min(int64(len(buf)&^7), to-from)]
		if err := readFull(file, piece, from); err != nil {
			return nil, err
		}
		for i := 0; i+8 <= len(piece); i += 8 {
			sum = crc32.Update(sum, castagnoli, piece[i:i+8])
			s.at = append(s.at, sum)
		}
		from += int64(len(piece))
	}
	return s, nil
}

// of returns the checksum of length bytes at an offset that is a multiple of 8, begun with another checksum.
func (s *sums) of(seed uint32, offset, length int64) (uint32, error) {
	start, end := offset-s.from, offset-s.from+length
	whole := s.at[end/8]
	if odd := end % 8; odd != 0 {
		var rest [8]byte
		if err := readFull(s.file, rest[:odd], s.from+end-odd); err != nil {
			return 0, err
		}
		whole = crc32.Update(whole, castagnoli, rest[:odd])
	}
	return whole ^ shift(s.at[start/8]^seed, length), nil
}

// shift returns what n bytes of zeros make of a checksum's state: crc(AB) = shift(crc(A), len(B)) ^ crc(B). It is a
// multiplication by x^(8n) modulo the polynomial.
func shift(sum uint32, n int64) uint32 {
	p := powers()
	for digit := range p {
		if d := n >> (digit * digitBits) & (1<<digitBits - 1); d != 0 {
			sum = multiply(p[digit][d], sum)
		}
	}
	return sum
}

const digitBits = 11 // three digits are enough for any segment

// powers returns x^(8 * d * 2^(11*digit)) modulo the polynomial, by digit and d.
var powers = sync.OnceValue(func() *[3][1 << digitBits]uint32 {
	var p [3][1 << digitBits]uint32
	step := uint32(1) << (31 - 8)
	for digit := range p {
		p[digit][0] = 1 << 31
		for d := 1; d < len(p[digit]); d++ {
			p[digit][d] = multiply(p[digit][d-1], step)
		}
		step = multiply(p[digit][len(p[digit])-1], step)
	}
	return &p
})

// multiply multiplies two polynomials modulo the checksum's. The highest bit stands for x^0.
func multiply(a, b uint32) uint32 {
	var product uint32
	for ; a != 0; a <<= 1 {
		if a&(1<<31) != 0 {
			product ^= b
		}
		if b&1 != 0 {
			b = b>>1 ^ crc32.Castagnoli
		} else {
			b >>= 1
		}
	}
	return product
}

// readFull fills b from a file, or fails: with io.ErrUnexpectedEOF if the file ends before.
func readFull(file io.ReaderAt, b []byte, offset int64) error {
	n, err := file.ReadAt(b, offset)
	switch {
	case n == len(b):
		return nil
	case err == nil || err == io.EOF:
		return io.ErrUnexpectedEOF
	}
	return err
}
