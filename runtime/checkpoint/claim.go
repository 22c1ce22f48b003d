package checkpoint

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stokehq/stoke/runtime/spec"
)

// Terms are claimed where checkpoints lie, too, so that a coordinator that has
// lost the folder of its own knows which ones there have been: a small object
// for each, beside the checkpoints.

// claims is the name under which a run's claims lie. The run is given by its
// hash, because a place may have checkpoints of several.
func claims(run string) string {
	_, digits, _ := strings.Cut(run, ":")
	return "terms-" + digits[:min(16, len(digits))]
}

// keptClaims is how many claims stay: somebody may be listing the last ones
// right now.
const keptClaims = 3

// Claim claims a term of a run; false: it was claimed before. Claims that are
// superfluous by then are removed.
func (p *Place) Claim(ctx context.Context, run string, term int64) (bool, error) {
	ok, err := p.claim(ctx, fmt.Sprintf("%s/%012d", claims(run), term))
	if err != nil {
		return false, fmt.Errorf("claim term %d in %s: %w", term, p, err)
	}
	if found, err := p.list(ctx, claims(run)+"/"); ok && err == nil {
		var keys []string
		for key := range found {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys[:max(0, len(keys)-keptClaims)] {
			p.remove(ctx, key) // else another time
		}
	}
	return ok, nil
}

// Claimed returns the highest term with a claim of the run, or with a
// checkpoint of any run. 0: none.
func (p *Place) Claimed(ctx context.Context, run string) (int64, error) {
	found, err := p.list(ctx, "")
	if err != nil {
		return 0, fmt.Errorf("look for claimed terms in %s: %w", p, err)
	}
	highest := int64(0)
	for key := range found {
		name, part, _ := strings.Cut(key, "/")
		if name == claims(run) {
			if term, err := strconv.ParseInt(part, 10, 64); err == nil {
				highest = max(highest, term)
			}
		}
		highest = max(highest, spec.TermIn(name))
	}
	return highest, nil
}
