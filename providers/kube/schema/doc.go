// Package schema knows the kinds of Kubernetes without asking a cluster: for
// plans of objects whose cluster this very plan makes. It has the OpenAPI schemas
// (version 3) of each minor that stoke supports, which are those that an API server
// of that minor serves, without descriptions, and without the values that
// strings may have.
//
// Its entry point is Library.Minor; Minor.Check tells what is wrong with an object by
// them, and Custom.Check does so for a kind that a CRD brings. What is asked for is read
// then: the schemas of a minor are decompressed once, in some milliseconds, and each one
// is decoded when it is first needed.
//
// It has no schemas of custom resources but those that it is given. What only an API
// server checks (names, how fields belong together, rules in CEL) it does not.
//
// `make schemas` writes the files in data.
package schema
