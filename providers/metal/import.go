package metal

import (
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/stokehq/stoke/providers/connect"
)

const (
	// importing is the id of an imported object that was not read yet.
	importing = "importing"
	// imported is the id of an imported object without a record, until it is
	// adopted.
	imported = "imported"
)

// importHint describes how an import reaches a machine behind bastions.
const importHint = `An import looks at the machine. Where a bastion leads there, or a credential of the provider block, the identifier says so, as the ssh of its metal_host does in JSON: ` +
	`{"address": "192.0.2.11", "host_key": "ssh-ed25519 AAAA…", "credential": "admin", "hops": [{"address": "192.0.2.10", "host_key": "ssh-ed25519 AAAA…"}]}`

// importedWay reads "[USER@]ADDRESS[:PORT] KEY", or a way in JSON.
func importedWay(id string) (connect.SSH, error) {
	var s connect.SSH
	if id = strings.TrimSpace(id); strings.HasPrefix(id, "{") {
		said := json.NewDecoder(strings.NewReader(id))
		said.DisallowUnknownFields()
		if err := said.Decode(&s); err != nil {
			return connect.SSH{}, fmt.Errorf("the JSON is not the ssh of a machine: %w", err)
		}
		return s, validImport(s)
	}
	where, key, ok := strings.Cut(id, " ")
	if !ok {
		return connect.SSH{}, fmt.Errorf("the host key is missing in %q", id)
	}
	s.Address, s.HostKey = where, strings.TrimSpace(key)
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
	return s, validImport(s)
}

func validImport(s connect.SSH) error {
	if diags := s.Validate(path.Empty()); diags.HasError() {
		return fmt.Errorf("%s: %s", diags[0].Summary(), strings.TrimSuffix(diags[0].Detail(), "."))
	}
	return nil
}

// importID is what importedWay reads.
func importID(way connect.SSH) string {
	way.HostKey = strings.TrimSpace(way.HostKey)
	if way.Credential != "" || len(way.Hops) > 0 {
		if said, err := json.Marshal(way); err == nil {
			return string(said)
		}
	}
	where := way.Address
	if way.Port != 0 {
		where = net.JoinHostPort(way.Address, strconv.Itoa(way.Port))
	}
	if way.User != "" {
		where = way.User + "@" + where
	}
	return where + " " + way.HostKey
}
