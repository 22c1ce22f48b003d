package connect

import (
	"context"
	"net"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// bastionBlock is a machine on the way to all that name none themselves.
func bastionBlock() schema.ListNestedBlock {
	text := func(required bool, description string) schema.StringAttribute {
		return schema.StringAttribute{Required: required, Optional: !required, Description: description}
	}
	return schema.ListNestedBlock{
		Description: "A machine on the way to all machines that have no bastion of their own, nearest first. A bastion itself is reached by those before it.",
		NestedObject: schema.NestedBlockObject{Attributes: map[string]schema.Attribute{
			"address":    text(true, "Host name or IP address."),
			"port":       schema.Int64Attribute{Optional: true, Description: "Port of the SSH server; 22 when left out."},
			"user":       text(false, "User to log in as; the credential's when left out."),
			"host_key":   text(true, `Public key of the machine, such as "ssh-ed25519 AAAA…".`),
			"credential": text(false, "Name of one of the credentials; the block itself when left out."),
		}},
	}
}

// readBastions reads the block's bastions; while a part of them is not known,
// nobody knows the way to a machine that has none of its own.
func (s *SSHSettings) readBastions(ctx context.Context, diags *diag.Diagnostics, at path.Path, list types.List) {
	if list.IsNull() {
		return
	}
	if v, err := list.ToTerraformValue(ctx); err != nil || !v.IsFullyKnown() {
		s.wayUnknown = true
		return
	}
	var hops []wireHop
	diags.Append(list.ElementsAs(ctx, &hops, false)...)
	for i, h := range hops {
		hop := h.hop()
		hop.validate(diags, at.AtListIndex(i))
		s.bastions = append(s.bastions, hop)
	}
}

// Hops returns the machines on the way to a machine without bastions of its own:
// the block's bastions. For a bastion itself it leaves out that bastion and
// those behind it. While they are not known, the error is ErrUnknown.
func (s SSHSettings) Hops(to Hop) ([]Hop, error) {
	if s.wayUnknown {
		return nil, ErrUnknown
	}
	for i, b := range s.bastions {
		if b.address() == to.address() {
			return s.bastions[:i], nil
		}
	}
	return s.bastions, nil
}

// address is where a machine is, to compare it with others.
func (h Hop) address() string {
	port := h.Port
	if port == 0 {
		port = 22
	}
	return net.JoinHostPort(strings.ToLower(strings.Trim(h.Address, "[]")), strconv.Itoa(port))
}
