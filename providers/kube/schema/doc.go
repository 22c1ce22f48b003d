// Package schema knows the kinds of Kubernetes without asking a cluster: for plans
// of objects whose cluster this very plan makes. It has the OpenAPI schemas
// (version 3) of each minor that stoke supports, as an API server of that minor
// serves them, without descriptions and without the enumerations of strings.
//
// Its entry point is Library.Minor; Minor.Check returns the faults of an object of a
// built-in kind, and Custom.Check the faults of an object whose kind a CRD defines.
// Schemas are read on demand: a minor is decompressed once, in some milliseconds, and
// each schema is decoded at its first use.
//
// Of custom resources it has only the schemas that the caller passes. Checks that
// only an API server can do (names, relations between fields, rules in CEL) are
// left out.
//
// `make schemas` writes the files in data.
package schema
