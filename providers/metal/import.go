package metal

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/stokehq/stoke/providers/connect"
)

// imported is the id of what was taken over, until it is read or made ours.
const imported = "imported"

// importedWay reads "[USER@]ADDRESS[:PORT] KEY".
func importedWay(id string) (connect.SSH, error) {
	where, key, ok := strings.Cut(strings.TrimSpace(id), " ")
	if !ok {
		return connect.SSH{}, fmt.Errorf("the host key is missing in %q", id)
	}
	s := connect.SSH{Hop: connect.Hop{Address: where, HostKey: strings.TrimSpace(key)}}
	if user, rest, ok := strings.Cut(where, "@"); ok {
		s.User, s.Address = user, rest
	}
	if address, port, err := net.SplitHostPort(s.Address); err == nil {
		n, err := strconv.Atoi(port)
		if err != nil {
			return connect.SSH{}, fmt.Errorf("%q is no port", port)
		}
		s.Address, s.Port = address, n
	}
	s.Address = strings.Trim(s.Address, "[]")
	if diags := s.Validate(path.Empty()); diags.HasError() {
		return connect.SSH{}, fmt.Errorf("%s: %s", diags[0].Summary(), strings.TrimSuffix(diags[0].Detail(), "."))
	}
	return s, nil
}

// importID is what importedWay reads of a way, which has no hops there and no
// credential: what comes after an import knows those.
func importID(way connect.SSH) string {
	where := way.Address
	if way.Port != 0 {
		where = net.JoinHostPort(way.Address, strconv.Itoa(way.Port))
	}
	if way.User != "" {
		where = way.User + "@" + where
	}
	return where + " " + strings.TrimSpace(way.HostKey)
}
