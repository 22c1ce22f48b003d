package gke

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/diag"
)

// begun is what is recorded beside an object that an apply has not seen finished.
// An object that is not well for another reason is not stoke's to finish.
type begun string

const (
	begunCreate begun = "create"
	begunUpdate begun = "update"
)

// begunKey and markKey are where that is recorded, and the mark of an object that
// nobody has seen yet.
const begunKey, markKey = "begun", "mark"

type privateGetter interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
}

type privateSetter interface {
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

func readBegun(ctx context.Context, p privateGetter) begun {
	return begun(readPrivate(ctx, p, begunKey))
}

func readPrivate(ctx context.Context, p privateGetter, key string) (s string) {
	if text, diags := p.GetKey(ctx, key); !diags.HasError() {
		_ = json.Unmarshal(text, &s) // what cannot be read was not written by us
	}
	return s
}

func writeBegun(ctx context.Context, p privateSetter, b begun) diag.Diagnostics {
	return p.SetKey(ctx, begunKey, strconv.AppendQuote(nil, string(b)))
}
