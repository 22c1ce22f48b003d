package coordinator

import (
	"errors"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/wire"
)

// After a server's refusal, the answers of the others may still be on their way:
// they do not count as answers to the next request.
func TestRefusedRequestDropsConnections(t *testing.T) {
	b := unserved(t, pointsSpec(), linear{})
	late := make(chan struct{})
	b.options.Servers = nil
	for i := range 2 {
		l := listen(t)
		b.options.Servers = append(b.options.Servers, l.Addr().String())
		go credentials.Serve(b.ctx, l, func(peer *wire.Conn, _ wire.Hello) {
			for first := true; ; first = false {
				if _, err := peer.Receive(time.Minute); err != nil {
					return
				}
				a := wire.Answer{Held: &wire.Holding{Version: 7}}
				if i == 0 && first {
					a = wire.Answer{Refused: "it is busy"}
				} else if first {
					<-late
				}
				if err := peer.Send(wire.TypeAnswer, a, nil); err != nil {
					return
				}
			}
		}, func(error) {})
	}
	p := newParameterServers(b.options, func(int) {})
	defer p.close()
	if err := p.connect(b.ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := p.askHeld(b.ctx, 1); !errors.Is(err, errLost) {
		t.Fatalf("refused: %v", err)
	}
	if p.lossReason() == "" || len(p.links) > 0 {
		t.Errorf("%d connections are kept", len(p.links))
	}
	close(late)
}
