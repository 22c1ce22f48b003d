package wire

import (
	"bytes"
	"context"
	"net"
	"runtime"
	"testing"
	"time"
)

// source is a connection whose other side has said all that it will say.
type source struct {
	net.Conn
	*bytes.Reader
}

func (s source) Read(p []byte) (int, error)     { return s.Reader.Read(p) }
func (source) Write(p []byte) (int, error)      { return len(p), nil }
func (source) Close() error                     { return nil }
func (source) SetReadDeadline(time.Time) error  { return nil }
func (source) SetWriteDeadline(time.Time) error { return nil }
func (source) RemoteAddr() net.Addr             { return &net.UnixAddr{} }

// heads has a place for every message that has one.
func heads() map[Type]any {
	return map[Type]any{
		TypeHello: new(Hello), TypeRefused: new(Refusal), TypeLease: new(Lease), TypeReport: new(Report),
		TypeHeartbeat: new(Heartbeat), TypeApplied: new(Applied), TypeLeave: new(Leave), TypeFailure: new(Failure),
		TypePull: new(Pull), TypeValues: new(Values), TypePush: new(Push), TypeAnswer: new(Answer),
		TypeRestore: new(Restore), TypePrepare: new(Prepare), TypeApply: new(Apply), TypeCut: new(CutRequest),
		TypeWrite: new(Write), TypeDiscard: new(Discard), TypeRevoke: new(Revoke), TypePiece: new(Piece), TypeFetch: new(Fetch),
		TypeMadeUpdate: new(MadeUpdate), TypeFollow: new(Follow),
	}
}

// FuzzFrames reads whatever a peer sends: it ends in an error or in the end of
// the stream, and takes memory for what came, not for what was announced.
func FuzzFrames(f *testing.F) {
	hello := recorded(f, TypeHello, Hello{Token: token, Version: ours.Version}, nil)
	f.Add(hello)
	for kind, head := range heads() {
		f.Add(append(bytes.Clone(hello), recorded(f, kind, head, []float32{1, 2})...))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c, _, err := ours.accept(context.Background(), source{Reader: bytes.NewReader(text)})
		if err != nil {
			return
		}
		defer c.Close()
		for {
			m, err := c.Receive(0)
			if err != nil {
				break
			}
			if head := heads()[m.Type]; head != nil {
				m.Decode(head)
			}
			if m.Values > len(text)/4 { // announced, but not there
				if c.Skip(m) == nil {
					t.Fatal("skipped more than came")
				}
				break
			}
			if c.Body(m, make([]float32, m.Values)) != nil {
				break
			}
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20+64*uint64(len(text)) {
			t.Errorf("%d bytes took %d bytes of memory", len(text), took)
		}
	})
}
