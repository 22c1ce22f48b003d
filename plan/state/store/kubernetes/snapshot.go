package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Terraform keeps the pieces of a large state in Secrets with the names of
// partName, which it writes one after the other: a state that is read during
// that, or after a crash, is torn. Stoke writes the rest elsewhere (see write);
// a copy is kept where Terraform looks for it.

func (b *bucket) partName(n int) string { return fmt.Sprintf("%s-part-%d", b.snapshot(), n) }

func (b *bucket) restName(id string, n int) string {
	return fmt.Sprintf("stoke-rest-%s-%s.%s-%d", b.workspace, b.suffix, id, n)
}

// getSnapshot reads the state, in whichever Secrets it is.
func (b *bucket) getSnapshot(ctx context.Context) (data []byte, version string, err error) {
	for range 10 {
		data, version, err = b.readSnapshot(ctx)
		if !errors.Is(err, errMoved) {
			break
		}
	}
	return data, version, err
}

func (b *bucket) readSnapshot(ctx context.Context) ([]byte, string, error) {
	list, err := b.client.secretsWith(ctx, selector(b.stateLabels()))
	if err != nil {
		return nil, "", err
	}
	var first *core.Secret
	parts := map[int][]byte{}
	count := 0
	for i := range list {
		name := list[i].Name
		if name == b.snapshot() {
			first = &list[i]
		} else if n := b.partNumber(name); n > 0 {
			parts[n], count = list[i].Data[dataKey], max(count, n)
		}
	}
	b.note(count)
	if first == nil || len(first.Data) == 0 {
		return nil, "", nil
	}
	data := first.Data[dataKey]
	if first.Annotations[encoding] != "gzip" && !(len(data) > 1 && data[0] == 0x1f && data[1] == 0x8b) {
		return data, first.ResourceVersion, nil // a plain state, stored by hand
	}
	text, err := unpacked(data, b.restOf(ctx, b.restName), func(n int) ([]byte, error) {
		if part, ok := parts[n]; ok {
			return part, nil
		}
		return nil, errEnd
	})
	if err != nil {
		return nil, "", fmt.Errorf("unpack: %w", err)
	}
	return text, first.ResourceVersion, nil
}

// partNumber returns the number of a part written by Terraform; 0 for other
// names.
func (b *bucket) partNumber(name string) int {
	text, ok := strings.CutPrefix(name, b.snapshot()+"-part-")
	if n, err := strconv.Atoi(text); ok && err == nil && n > 0 {
		return n
	}
	return 0
}

// note keeps how many parts there are.
func (b *bucket) note(parts int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.parts = parts
}

// putSnapshot replaces the state. Leftovers of earlier writes are listed before
// and removed afterwards: only a reader of the replaced state could still use
// them.
func (b *bucket) putSnapshot(ctx context.Context, data []byte, ifVersion string) (string, error) {
	list, id, err := packedPieces(data, b.largest)
	if err != nil {
		return "", err
	}
	old, err := b.rests(ctx)
	if err != nil {
		return "", err
	}
	first := b.visible(b.snapshot())
	first.ResourceVersion = ifVersion
	b.setClean(false)
	version, err := b.write(ctx, first, list, func(n int) core.Secret {
		var s core.Secret
		s.Name, s.Labels = b.restName(id, n), b.labelled(b.roleLabels(restRole), "stoke")
		return s
	})
	if err != nil {
		return "", err
	}
	if err := b.showParts(ctx, list); err != nil {
		return "", err
	}
	if err := b.removeAll(ctx, old); err != nil {
		return "", err
	}
	b.setClean(len(list) == 1)
	return version, nil
}

// visible returns a Secret that Terraform recognises as a state.
func (b *bucket) visible(name string) core.Secret {
	var s core.Secret
	s.Name, s.Labels, s.Annotations = name, b.labelled(b.stateLabels(), "terraform"), map[string]string{encoding: "gzip"}
	return s
}

// showParts copies the rest of a state to where Terraform looks for it, and
// removes what is too much there.
func (b *bucket) showParts(ctx context.Context, list [][]byte) error {
	b.mu.Lock()
	before := b.parts
	b.mu.Unlock()
	if before < 0 {
		names, err := b.client.namesWith(ctx, selector(b.stateLabels()))
		if err != nil {
			return err
		}
		for _, s := range names {
			before = max(before, b.partNumber(s.Metadata.Name))
		}
	}
	for n := 1; n < len(list); n++ {
		o := b.visible(b.partName(n))
		o.Data = map[string][]byte{dataKey: list[n]}
		err := b.client.update(ctx, secrets, o.Name, &o, &core.Secret{})
		if apierrors.IsNotFound(err) {
			err = b.client.create(ctx, secrets, &o, &core.Secret{})
		}
		if err != nil && !apierrors.IsAlreadyExists(err) { // which is ours, as its answer was lost
			return err
		}
	}
	for n := len(list); n <= before; n++ {
		if err := b.client.remove(ctx, secrets, b.partName(n), ""); err != nil {
			return err
		}
	}
	b.note(len(list) - 1)
	return nil
}

// rests names what is kept of large states, unless it is known that there is
// nothing.
func (b *bucket) rests(ctx context.Context) ([]string, error) {
	b.mu.Lock()
	clean := b.clean
	b.mu.Unlock()
	if clean {
		return nil, nil
	}
	list, err := b.client.namesWith(ctx, selector(b.roleLabels(restRole)))
	names := make([]string, 0, len(list))
	for _, s := range list {
		names = append(names, s.Metadata.Name)
	}
	return names, err
}

func (b *bucket) setClean(clean bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clean = clean
}

func (b *bucket) removeAll(ctx context.Context, names []string) error {
	for _, name := range names {
		if err := b.client.remove(ctx, secrets, name, ""); err != nil {
			return err
		}
	}
	return nil
}

// deleteSnapshot removes all that a state consists of, its first Secret
// before the others.
func (b *bucket) deleteSnapshot(ctx context.Context, ifVersion string) error {
	old, err := b.rests(ctx)
	if err != nil {
		return err
	}
	if err := b.client.remove(ctx, secrets, b.snapshot(), ifVersion); err != nil {
		return conflicting(err)
	}
	b.note(-1)
	if err := b.showParts(ctx, [][]byte{nil}); err != nil {
		return err
	}
	return b.removeAll(ctx, old)
}
