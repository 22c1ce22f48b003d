package program

import (
	"errors"
	"fmt"
	"net"
	"testing"
)

func TestHeldPorts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // the runtime's own descriptors are made once
	if err != nil {
		t.Fatal(err)
	}
	taken := l.Addr().(*net.TCPAddr).Port
	if p, err := HoldPort(taken); !errors.Is(err, ErrPort) {
		t.Errorf("a port that is taken: %+v, %v", p, err)
	}
	l.Close()
	before := descriptors(t)
	p, err := HoldPort(0)
	if err != nil {
		t.Fatal(err)
	}
	if p.Number < firstPort || p.Number > lastPort {
		t.Errorf("port %d", p.Number)
	}
	if other, err := HoldPort(p.Number); !errors.Is(err, ErrPort) {
		t.Errorf("held twice: %+v, %v", other, err)
	}
	for _, address := range []string{"", "127.0.0.1", "[::]"} { // Go sets SO_REUSEADDR, as the frameworks do
		l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", address, p.Number))
		if err != nil {
			t.Error(err)
			continue
		}
		if c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", p.Number)); err != nil {
			t.Error(err)
		} else {
			c.Close()
		}
		l.Close()
	}
	p.Release()
	p.Release()
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}
