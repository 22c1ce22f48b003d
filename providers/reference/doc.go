// Package reference writes the pages of docs/reference from providers' schemas.
// Tests alone use it: Check is its entry point.
package reference
