package gcptest

import (
	compute "google.golang.org/api/compute/v1"
)

// getInstance answers a machine that Attach or Put has made.
func (c *Cloud) getInstance(r *request) (any, error) {
	scope, err := c.scope(r)
	if err != nil {
		return nil, err
	}
	path := scope + "/instances/" + r.path["instance"]
	if i := c.instances[path]; i != nil {
		return i, nil
	}
	return nil, computeNotFound(path)
}

// attachTo makes the machine at a path, which runs, if there is none.
func (c *Cloud) attachTo(path string) {
	if c.instances[path] == nil {
		c.instances[path] = &compute.Instance{Kind: "compute#instance", Id: number(path), Name: last(path), SelfLink: computeURL + path, Status: "RUNNING"}
	}
}
