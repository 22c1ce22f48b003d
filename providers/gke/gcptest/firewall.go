package gcptest

import (
	"encoding/json"
	"fmt"
	"strings"

	compute "google.golang.org/api/compute/v1"
)

func (c *Cloud) firewall(r *request) (string, *compute.Firewall, error) {
	scope, err := c.scope(r)
	if err != nil {
		return "", nil, err
	}
	path := scope + "/firewalls/" + r.path["firewall"]
	if f := c.firewalls[path]; f != nil {
		return path, f, nil
	}
	return path, nil, computeNotFound(path)
}

func (c *Cloud) getFirewall(r *request) (any, error) {
	path, _, err := c.firewall(r)
	if err != nil {
		return nil, err
	}
	for _, o := range c.runningOn("compute", path) {
		c.look(o)
	}
	_, f, err := c.firewall(r)
	return f, err
}

func (c *Cloud) listFirewalls(r *request) (any, error) {
	if _, err := c.scope(r); err != nil {
		return nil, err
	}
	return list(r, "compute#firewallList", sortedValues(c.firewalls), func(f *compute.Firewall) map[string]string {
		return map[string]string{"name": f.Name, "network": f.Network, "direction": f.Direction, "description": f.Description}
	})
}

func (c *Cloud) insertFirewall(r *request) (any, error) {
	return c.once(r, func() (*operation, error) {
		scope, err := c.scope(r)
		if err != nil {
			return nil, err
		}
		f := &compute.Firewall{}
		if err := r.decode(f); err != nil {
			return nil, err
		}
		path := scope + "/firewalls/" + f.Name
		if err := checkComputeName(f.Name); err != nil {
			return nil, err
		}
		if c.firewalls[path] != nil {
			return nil, computeExists(path)
		}
		var given struct{ Priority *int64 }
		if err := json.Unmarshal(r.Body, &given); err != nil {
			return nil, badRequest("%v", err)
		}
		if given.Priority == nil {
			f.Priority = 1000
		}
		if err := c.fillFirewall(f); err != nil {
			return nil, err
		}
		f.Kind, f.Id = "compute#firewall", number(path, fmt.Sprint(c.begun))
		f.CreationTimestamp, f.SelfLink = c.now(), computeURL+path
		c.firewalls[path] = f
		return c.begin("compute", scope, "insert", path, func(half error) error {
			if half != nil {
				delete(c.firewalls, path)
			}
			return half
		}), nil
	})
}

// fillFirewall checks a rule and adds what the server adds.
func (c *Cloud) fillFirewall(f *compute.Firewall) error {
	standard(&f.Direction, "INGRESS")
	standard(&f.Network, "global/networks/default")
	network, err := c.network(last(f.Network))
	if err != nil {
		return err
	}
	f.Network = network.SelfLink
	if f.LogConfig == nil {
		f.LogConfig = &compute.FirewallLogConfig{ForceSendFields: []string{"Enable"}}
	}
	f.ForceSendFields = []string{"Priority", "Disabled"}
	if err := checkFirewall(f); err != nil {
		return err
	}
	// What names no end is about every address: sourceRanges and destinationRanges
	// of google_compute_firewall in terraform-provider-google.
	from := len(f.SourceRanges) + len(f.SourceTags) + len(f.SourceServiceAccounts)
	switch {
	case f.Direction == "INGRESS" && from == 0:
		f.SourceRanges = []string{"0.0.0.0/0"}
	case f.Direction == "EGRESS" && len(f.DestinationRanges) == 0:
		f.DestinationRanges = []string{"0.0.0.0/0"}
	}
	return nil
}

// changeFirewall merges a patch into a rule, or puts an update in its place.
// Name, network and direction cannot change.
func (c *Cloud) changeFirewall(r *request) (any, error) {
	return c.once(r, func() (*operation, error) {
		path, f, err := c.firewall(r)
		if err != nil {
			return nil, err
		}
		changed := &compute.Firewall{Name: f.Name, Network: f.Network, Direction: f.Direction, Priority: 1000, Description: ""}
		if r.Verb == "PATCH" {
			if err := patched(f, r.Body, changed); err != nil {
				return nil, err
			}
		} else if err := r.decode(changed); err != nil {
			return nil, err
		}
		if err := c.fillFirewall(changed); err != nil {
			return nil, err
		}
		for _, fixed := range []struct{ field, was, is string }{
			{"name", f.Name, changed.Name}, {"network", f.Network, changed.Network}, {"direction", f.Direction, changed.Direction},
		} {
			if fixed.was != fixed.is {
				return nil, computeInvalid("Invalid value for field 'resource.%s': '%s'. It cannot be changed: it is '%s'.", fixed.field, fixed.is, fixed.was)
			}
		}
		if err := c.busy(path); err != nil {
			return nil, err
		}
		changed.Kind, changed.Id, changed.CreationTimestamp, changed.SelfLink = f.Kind, f.Id, f.CreationTimestamp, f.SelfLink
		return c.begin("compute", path[:strings.Index(path, "/firewalls/")], strings.ToLower(r.Verb), path, func(half error) error {
			if half == nil {
				c.firewalls[path] = changed
			}
			return half
		}), nil
	})
}

// patched is an object with a patch merged into it: null takes a field away,
// lists are replaced.
func patched(object any, patch []byte, into any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	fields, changes := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	if err := json.Unmarshal(patch, &changes); err != nil {
		return badRequest("%v", err)
	}
	for name, value := range changes {
		if string(value) == "null" {
			delete(fields, name)
		} else {
			fields[name] = value
		}
	}
	if text, err = json.Marshal(fields); err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

func (c *Cloud) deleteFirewall(r *request) (any, error) {
	return c.once(r, func() (*operation, error) {
		path, _, err := c.firewall(r)
		if err != nil {
			return nil, err
		}
		if err := c.busy(path); err != nil {
			return nil, err
		}
		return c.begin("compute", path[:strings.Index(path, "/firewalls/")], "delete", path, func(half error) error {
			if half == nil {
				delete(c.firewalls, path)
			}
			return half
		}), nil
	})
}
