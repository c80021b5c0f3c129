package store

import (
	"encoding/binary"
	"errors"
	"io/fs"

	"github.com/letomq/leto/store/journal"
)

// position is up to where the index is known to be on the device.
type position struct {
	window  uint64           // the last one applied, 0: none
	next    journal.Position // behind it
	epoch   uint64
	time    uint64 // of the index
	storeID [16]byte
}

// positionVersion rises with the form of the index: a position of another version is none, and the index is made anew.
const (
	positionMagic   = "LETOPOSN"
	positionVersion = 2
	positionSize    = 8 + 2 + 6*8 + 16 + 4
)

func (p *position) encode() []byte {
	b := append(make([]byte, 0, positionSize), positionMagic...)
	b = binary.BigEndian.AppendUint16(b, positionVersion)
	for _, v := range [...]uint64{p.window, p.next.Index, p.next.Segment, uint64(p.next.Offset), p.epoch, p.time} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	b = append(b, p.storeID[:]...)
	return binary.BigEndian.AppendUint32(b, journal.Checksum(b))
}

func (p *position) decode(b []byte) bool {
	if len(b) != positionSize || string(b[:8]) != positionMagic ||
		binary.BigEndian.Uint32(b[positionSize-4:]) != journal.Checksum(b[:positionSize-4]) ||
		binary.BigEndian.Uint16(b[8:]) != positionVersion {
		return false
	}
	v := func(i int) uint64 { return binary.BigEndian.Uint64(b[10+8*i:]) }
	p.window, p.next = v(0), journal.Position{Index: v(1), Segment: v(2), Offset: int64(v(3))}
	p.epoch, p.time = v(4), v(5)
	copy(p.storeID[:], b[10+6*8:])
	return true
}

// readPosition returns the position, and whether there is a whole one.
func readPosition(files journal.FS, id [16]byte) (p position, known bool, err error) {
	b, err := readFile(files, positionName)
	if errors.Is(err, fs.ErrNotExist) {
		return p, false, nil
	}
	if err != nil {
		return p, false, err
	}
	return p, p.decode(b) && p.storeID == id, nil
}

func (p *position) write(files journal.FS) error {
	return replaceFile(files, positionFresh, positionName, p.encode())
}
