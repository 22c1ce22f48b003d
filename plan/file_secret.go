package plan

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/plan/redact"
	"github.com/stokehq/stoke/providers"
)

// fileSecrets has the sensitive values of one record. It is sealed as a whole;
// in the record itself its places are unknown.
type fileSecrets struct {
	Before       [][]byte `json:"before,omitempty"` // in the order of redact.Cut
	After        [][]byte `json:"after,omitempty"`
	Config       [][]byte `json:"config,omitempty"`
	Private      []byte   `json:"private,omitempty"`
	PriorPrivate []byte   `json:"prior_private,omitempty"`
}

func (s *fileSecrets) empty() bool {
	return len(s.Before)+len(s.After)+len(s.Config)+len(s.Private)+len(s.PriorPrivate) == 0
}

// placesOf returns the places of a change that must not be readable in a file:
// sensitive by the configuration or the schema, or write-only.
func placesOf(known redact.Places, c *Change) []cty.Path {
	var b *providers.Block
	if c.Schema != nil {
		b = c.Schema.Block
	}
	return known.SecretPaths(b, c.BeforeSensitive, c.AfterSensitive)
}
