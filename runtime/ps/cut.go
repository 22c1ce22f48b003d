package ps

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// restore puts the server at a cut; see wire.Restore.
func (s *Server) restore(r wire.Restore, initial []float32) wire.Answer {
	s.mu.Lock()
	refused := s.begins(r.Term)
	s.mu.Unlock()
	if refused != nil {
		return *refused
	}
	n := r.To - r.From
	if r.From < 0 || n <= 0 || n > wire.MaxBody {
		return wire.Answer{Error: fmt.Sprintf("span [%d, %d) is not one", r.From, r.To)}
	}
	for _, v := range r.Vars {
		if v.Offset < 0 || v.Len < 0 || v.Offset > n-v.Len {
			return wire.Answer{Error: fmt.Sprintf("variable %s does not lie in the span", v.Name)}
		}
	}
	vectors := make([][]float32, 1+r.Recipe.Slots())
	if len(r.Files) == 0 {
		if len(initial) != n {
			return wire.Answer{Error: fmt.Sprintf("%d initial values for a span of %d", len(initial), n)}
		}
		vectors[0] = initial
	}
	for i := range vectors {
		if vectors[i] == nil {
			vectors[i] = make([]float32, n)
		}
	}
	covered := 0
	for _, f := range r.Files {
		k, err := load(r.Folder, f, r.From, r.To, vectors)
		if err != nil {
			return wire.Answer{Error: err.Error()}
		}
		covered += k
	}
	if len(r.Files) > 0 && covered != n {
		return wire.Answer{Error: fmt.Sprintf("the checkpoint covers %d of %d values", covered, n)}
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if refused := s.begins(r.Term); refused != nil { // another one came while the files were read
		return *refused
	}
	s.term, s.version, s.from, s.vars = r.Term, r.Version, r.From, r.Vars
	s.values, s.slots, s.present, s.tree = &vector{v: vectors[0]}, nil, new(version), r.Tree
	s.pieces = nil
	for at := 0; at < n; at += piece {
		s.pieces = append(s.pieces, engine.Cut(r.Vars, at, min(at+piece, n)))
	}
	if len(vectors) > 1 {
		s.slots = &vector{v: vectors[1]}
	}
	clear(s.pending)
	clear(s.void)
	clear(s.coming)
	clear(s.failed)
	s.sum, s.snapshot, s.free, s.made = nil, nil, nil, 0 // others' buffers have another length, or may still be read
	s.wake()
	s.announce()
	s.log.Info("restored", "term", s.term, "version", s.version, "from", r.From, "to", r.To)
	s.note(spec.Event{Type: spec.EventRestore})
	return wire.Answer{}
}

// begins checks that a restore begins a term: each term has one. Called with mu
// held.
func (s *Server) begins(term int64) *wire.Answer {
	if a := s.heed(term); a != nil {
		return a
	}
	if term <= s.term {
		a := refuse("was restored in term %d already", s.term)
		return &a
	}
	return nil
}

// load copies what a checkpoint's file holds of the span [from, to) and says
// how many values of it that was. The file's hash is checked before anything
// is believed.
func load(folder string, f wire.File, from, to int, vectors [][]float32) (int, error) {
	a, b := max(from, f.From), min(to, f.To)
	if a >= b {
		return 0, nil
	}
	path := filepath.Join(folder, filepath.Base(f.Name))
	file, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("load checkpoint: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return 0, fmt.Errorf("load checkpoint: %w", err)
	}
	length := f.To - f.From
	if want := 4 * int64(length) * int64(f.Vectors); info.Size() != want {
		return 0, fmt.Errorf("load checkpoint: %s has %d bytes, not %d", path, info.Size(), want)
	}
	if f.Vectors < len(vectors) {
		return 0, fmt.Errorf("load checkpoint: %s has %d vectors, the optimizer needs %d", path, f.Vectors, len(vectors))
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return 0, fmt.Errorf("load checkpoint: %w", err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != f.SHA256 {
		return 0, fmt.Errorf("load checkpoint: %s is damaged: its hash is %s, not %s", path, got, f.SHA256)
	}
	for i, v := range vectors {
		part := io.NewSectionReader(file, 4*int64(i*length+a-f.From), 4*int64(b-a))
		if err := binary.Read(bufio.NewReaderSize(part, 1<<20), binary.LittleEndian, v[a-from:b-from]); err != nil {
			return 0, fmt.Errorf("load checkpoint: %w", err)
		}
	}
	return b - a, nil
}

// keep takes a snapshot. Nothing is copied before an update changes it.
func (s *Server) keep(c wire.Cut) wire.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.at(c.Term, c.Version); a != nil {
		return *a
	}
	s.letSnapshotGo(s.snapshot)
	s.snapshot = &snapshot{from: s.from, values: s.values.hold(), slots: s.slots.hold()}
	return wire.Answer{}
}

// write saves the last snapshot; training goes on meanwhile.
func (s *Server) write(w wire.Write) wire.Answer {
	s.mu.Lock()
	refused, c := s.heed(w.Term), s.snapshot
	if refused == nil && c != nil {
		s.snapshot = nil // ours alone until it is written
		s.writing++
	}
	s.mu.Unlock()
	if refused != nil {
		return *refused
	}
	if c == nil {
		return refuse("nothing was cut")
	}
	vectors := c.vectors()
	hash, err := save(filepath.Join(w.Folder, filepath.Base(w.Name)), vectors)
	s.mu.Lock()
	s.writing--
	s.letSnapshotGo(c)
	s.wake()
	s.mu.Unlock()
	if err != nil {
		return wire.Answer{Error: err.Error()}
	}
	return wire.Answer{File: wire.File{
		Name: w.Name, From: c.from, To: c.from + len(vectors[0]), Vectors: len(vectors), SHA256: hash,
	}}
}

// save writes vectors one after the other, synced, and returns the hash.
func save(path string, vectors [][]float32) (string, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return "", fmt.Errorf("write checkpoint: %w", err)
	}
	sum := sha256.New()
	out := io.MultiWriter(file, sum)
	block := make([]byte, 0, 64<<10)
	for _, v := range vectors {
		for chunk := range slices.Chunk(v, cap(block)/4) {
			block = block[:0]
			for _, x := range chunk {
				block = binary.LittleEndian.AppendUint32(block, math.Float32bits(x))
			}
			if _, err = out.Write(block); err != nil {
				break
			}
		}
	}
	if err == nil {
		err = file.Sync()
	}
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return "", fmt.Errorf("write checkpoint: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
