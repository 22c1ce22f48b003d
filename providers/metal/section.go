package metal

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/stokehq/stoke/providers/metal/host"
)

// section is one part of what metal_host declares: a few of its attributes and
// the package that looks after them. A section reads and writes its own fields
// of the model only.
type section interface {
	// attributes are the section's part of the schema.
	attributes() map[string]schema.Attribute
	// validate checks a configuration without the machine; values may be unknown.
	validate(ctx context.Context, config *hostModel, diags *diag.Diagnostics)
	// plan sets what follows from the arguments without looking at the machine.
	// prior is what is stored; nil where the resource is new.
	plan(ctx context.Context, prior, plan *hostModel, diags *diag.Diagnostics)
	// observe sets in into what the machine has of what declared declares.
	observe(ctx context.Context, m host.Machine, declared, into *hostModel) error
	// changes compares: what apply would do on the machine now. What must not
	// be done at all is reported.
	changes(ctx context.Context, m host.Machine, want *hostModel, diags *diag.Diagnostics) []host.Change
	// apply makes the machine what want declares, and restores what the record
	// knows of but want no longer declares.
	apply(ctx context.Context, m host.Machine, rec *host.Record, want *hostModel) error
	// undoing is what apply takes back because the record knows of it and want
	// does not declare it; where want is nil, what restore takes back.
	undoing(ctx context.Context, m host.Machine, rec *host.Record, want *hostModel) ([]host.Change, error)
	// restore undoes everything that the record knows of.
	restore(ctx context.Context, m host.Machine, rec *host.Record) ([]host.Outcome, error)
}

// sections in the order in which they are applied; destroying goes backwards.
// Without settings they know the schema and validate.
func sections(s *settings) []section {
	return []section{packagesSection{s}, systemSection{}, containerdSection{s}, factsSection{s}}
}

func observeAll(ctx context.Context, s *settings, m host.Machine, declared, into *hostModel) error {
	for _, part := range sections(s) {
		if err := part.observe(ctx, m, declared, into); err != nil {
			return err
		}
	}
	return nil
}
