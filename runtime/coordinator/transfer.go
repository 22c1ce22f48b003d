package coordinator

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/wire"
)

// askRestore asks for what may take as long as reading a checkpoint takes.
func (p *parameterServers) askRestore(ctx context.Context, i int, r wire.Restore, values []float32) (wire.Answer, error) {
	if err := p.links[i].conn.Send(wire.TypeRestore, r, values); err != nil {
		return wire.Answer{}, fmt.Errorf("%w: server %d: %w", errLost, i, err)
	}
	return p.await(ctx, i, wire.TypeRestore, restoreTime)
}

// send streams a server's span of a checkpoint to it.
func (p *parameterServers) send(ctx context.Context, i int, r wire.Restore) (wire.Answer, error) {
	conn := p.links[i].conn
	covered := 0
	var failed error
	for _, part := range r.Parts {
		n, err := p.checkpoints.Read(ctx, r.Checkpoint, part, r.From, r.To, 1+r.Recipe.Slots(), func(vector, offset int, values []float32) error {
			if err := conn.Send(wire.TypePiece, wire.Piece{Vector: vector, Offset: offset}, values); err != nil {
				return fmt.Errorf("%w: server %d: %w", errLost, i, err)
			}
			return nil
		})
		if errors.Is(err, errLost) {
			return wire.Answer{}, err
		}
		if covered += n; err != nil {
			failed = err
			break
		}
	}
	end := wire.Piece{Last: true}
	if failed == nil {
		failed = checkpoint.Covers(r.Checkpoint, covered, r.To-r.From)
	}
	if failed != nil {
		end.Error = failed.Error()
	}
	if err := conn.Send(wire.TypePiece, end, nil); err != nil {
		return wire.Answer{}, fmt.Errorf("%w: server %d: %w", errLost, i, err)
	}
	a, err := p.await(ctx, i, wire.TypeRestore, restoreTime)
	a.Damaged = failed != nil && checkpoint.Unusable(failed)
	return a, err
}

// write lets every server save its span as a part of the checkpoint.
func (p *parameterServers) write(ctx context.Context, term int64, name string) ([]checkpoint.Part, error) {
	var parts []checkpoint.Part
	k := len(p.addresses)
	for i := range k {
		w := wire.Write{Term: term, Checkpoint: name, Part: fmt.Sprintf("server-%d-of-%d-term-%d.f32", i, k, term)}
		part, err := p.writeOne(ctx, p.addresses[i], w)
		if err != nil {
			return nil, fmt.Errorf("server %d: %w", i, err)
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// writeOne asks one server over a connection of its own, so that commits need
// not wait. What a server sends instead of writing it, is written here.
func (p *parameterServers) writeOne(ctx context.Context, address string, w wire.Write) (checkpoint.Part, error) {
	none := checkpoint.Part{}
	conn, err := p.credentials.Dial(ctx, address, wire.Hello{Role: wire.RoleCoordinator, PID: os.Getpid()})
	if err != nil {
		return none, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := conn.Send(wire.TypeWrite, w, nil); err != nil {
		return none, err
	}
	sent := receiver{place: p.checkpoints, w: w}
	defer sent.abort()
	for {
		m, err := conn.Receive(writeTime)
		if err != nil {
			return none, err
		}
		if m.Type == wire.TypePiece {
			if err := sent.take(ctx, conn, m); err != nil {
				return none, err
			}
			continue
		}
		var a wire.Answer
		if err := m.Decode(&a); err != nil {
			return none, err
		}
		if a.Error != "" {
			return none, fmt.Errorf("%w: %s", session.ErrStorage, a.Error)
		}
		if err := refusal(a, w.Term); err != nil {
			return none, err
		}
		return a.Part, sent.finish(a.Part)
	}
}

// receiver writes the part of a checkpoint that a server sends, if it does.
type receiver struct {
	place  *checkpoint.Place
	w      wire.Write
	out    *checkpoint.Writer // nil: nothing came
	values []float32
	vector int // of the next piece
	offset int
}

func (r *receiver) take(ctx context.Context, conn *wire.Conn, m *wire.Message) error {
	var p wire.Piece
	if err := m.Decode(&p); err != nil {
		return err
	}
	if p.Vector == r.vector+1 && p.Offset == 0 {
		r.vector, r.offset = p.Vector, 0
	}
	if p.Vector != r.vector || p.Offset != r.offset || m.Values > wire.PieceValues {
		return fmt.Errorf("the server sent %d values from element %d of vector %d after element %d of vector %d", m.Values, p.Offset, p.Vector, r.offset, r.vector)
	}
	if r.values == nil {
		r.values = make([]float32, wire.PieceValues)
	}
	r.offset += m.Values
	if err := conn.Body(m, r.values[:m.Values]); err != nil {
		return err
	}
	var err error
	if r.out == nil {
		r.out, err = r.place.Create(ctx, r.w.Checkpoint, r.w.Part)
	}
	if err == nil {
		err = r.out.Write(r.values[:m.Values])
	}
	if err != nil {
		return fmt.Errorf("%w: %w", session.ErrStorage, err)
	}
	return nil
}

// finish makes what came durable, and checks that it is what was sent.
func (r *receiver) finish(part checkpoint.Part) error {
	if r.out == nil {
		return nil // the server wrote it itself
	}
	sum, err := r.out.Close()
	if err != nil {
		return fmt.Errorf("%w: %w", session.ErrStorage, err)
	}
	if sum != part.SHA256 {
		return fmt.Errorf("%w: what the server sent has another hash here", errLost)
	}
	return nil
}

func (r *receiver) abort() {
	if r.out != nil {
		r.out.Abort()
	}
}
