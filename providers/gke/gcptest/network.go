package gcptest

import (
	"fmt"

	compute "google.golang.org/api/compute/v1"
)

// network is the network of a name, of this project.
func (c *Cloud) network(name string) (*compute.Network, error) {
	return c.networkOf(c.options.Project, name)
}

func (c *Cloud) networkOf(project, name string) (*compute.Network, error) {
	for _, one := range c.networks(project) {
		if one.Name == name {
			return one, nil
		}
	}
	return nil, computeNotFound("projects/" + project + "/global/networks/" + name)
}

func (c *Cloud) networks(project string) []*compute.Network {
	var out []*compute.Network
	for _, name := range append([]string{"default"}, c.options.Networks...) {
		self := computeURL + "projects/" + project + "/global/networks/" + name
		one := &compute.Network{Kind: "compute#network", Id: number(self), Name: name, SelfLink: self, AutoCreateSubnetworks: name == "default",
			ForceSendFields: []string{"AutoCreateSubnetworks"}, RoutingConfig: &compute.NetworkRoutingConfig{RoutingMode: "REGIONAL"}, Mtu: 1460}
		for _, region := range c.regions() {
			for _, sub := range c.subnetworks(project, region) {
				if sub.Network == self {
					one.Subnetworks = append(one.Subnetworks, sub.SelfLink)
				}
			}
		}
		out = append(out, one)
	}
	return out
}

// subnetworks are those of a region: one for every network, and what the
// options say.
func (c *Cloud) subnetworks(of, region string) []*compute.Subnetwork {
	project := computeURL + "projects/" + of
	scope := project + "/regions/" + region
	var out []*compute.Subnetwork
	complete := func(one compute.Subnetwork, network string) {
		one.Kind, one.Id, one.SelfLink = "compute#subnetwork", number(scope, one.Name), scope+"/subnetworks/"+one.Name
		one.Region, one.Network = scope, project+"/global/networks/"+network
		standard(&one.Purpose, "PRIVATE")
		standard(&one.StackType, "IPV4_ONLY")
		if one.IpCidrRange == "" {
			one.IpCidrRange = fmt.Sprintf("10.%d.0.0/20", 128+number(region, network)%64)
		}
		out = append(out, &one)
	}
	given := make(map[string]bool)
	for _, one := range c.options.Subnetworks {
		if last(one.Region) == region {
			given[one.Name] = true
			network := last(one.Network)
			standard(&network, "default")
			complete(*one, network)
		}
	}
	for _, name := range append([]string{"default"}, c.options.Networks...) {
		if !given[name] {
			complete(compute.Subnetwork{Name: name}, name)
		}
	}
	return out
}

// named is the project that a call names, by its id.
func (c *Cloud) named(r *request) string {
	if r.path["project"] == c.projectNumber() {
		return c.options.Project
	}
	return r.path["project"]
}

func (c *Cloud) getNetwork(r *request) (any, error) {
	if _, err := c.scope(r); err != nil {
		return nil, err
	}
	return c.networkOf(c.named(r), r.path["network"])
}

func (c *Cloud) listNetworks(r *request) (any, error) {
	if _, err := c.scope(r); err != nil {
		return nil, err
	}
	return list(r, "compute#networkList", c.networks(c.named(r)), func(one *compute.Network) map[string]string { return map[string]string{"name": one.Name} })
}

func (c *Cloud) getSubnetwork(r *request) (any, error) {
	if _, err := c.scope(r); err != nil {
		return nil, err
	}
	for _, one := range c.subnetworks(c.named(r), r.path["region"]) {
		if one.Name == r.path["subnetwork"] {
			return one, nil
		}
	}
	return nil, computeNotFound("projects/" + c.named(r) + "/regions/" + r.path["region"] + "/subnetworks/" + r.path["subnetwork"])
}

func (c *Cloud) listSubnetworks(r *request) (any, error) {
	if _, err := c.scope(r); err != nil {
		return nil, err
	}
	return list(r, "compute#subnetworkList", c.subnetworks(c.named(r), r.path["region"]), func(one *compute.Subnetwork) map[string]string {
		return map[string]string{"name": one.Name, "network": one.Network}
	})
}

func (c *Cloud) listRouters(r *request) (any, error) {
	if _, err := c.scope(r); err != nil {
		return nil, err
	}
	var items []*compute.Router
	for _, given := range c.options.Routers {
		if last(given.Region) != r.path["region"] {
			continue
		}
		network, err := c.network(last(given.Network))
		if err != nil {
			return nil, err
		}
		one := *given
		one.Kind, one.Network, one.Region = "compute#router", network.SelfLink, computeURL+"projects/"+c.options.Project+"/regions/"+last(given.Region)
		one.SelfLink = one.Region + "/routers/" + one.Name
		items = append(items, &one)
	}
	return list(r, "compute#routerList", items, func(one *compute.Router) map[string]string {
		return map[string]string{"name": one.Name, "network": one.Network}
	})
}

func (c *Cloud) reservations(zone string) []*compute.Reservation {
	scope := computeURL + "projects/" + c.options.Project + "/zones/" + zone
	var items []*compute.Reservation
	for _, given := range c.options.Reservations {
		if last(given.Zone) == zone {
			one := *given
			one.Kind, one.Zone, one.SelfLink = "compute#reservation", scope, scope+"/reservations/"+one.Name
			standard(&one.Status, "READY")
			items = append(items, &one)
		}
	}
	return items
}

func (c *Cloud) getReservation(r *request) (any, error) {
	scope, err := c.scope(r)
	if err != nil {
		return nil, err
	}
	for _, one := range c.reservations(r.path["zone"]) {
		if one.Name == r.path["reservation"] {
			return one, nil
		}
	}
	return nil, computeNotFound(scope + "/reservations/" + r.path["reservation"])
}

func (c *Cloud) listReservations(r *request) (any, error) {
	if _, err := c.scope(r); err != nil {
		return nil, err
	}
	return list(r, "compute#reservationList", c.reservations(r.path["zone"]), func(one *compute.Reservation) map[string]string {
		return map[string]string{"name": one.Name, "status": one.Status}
	})
}
