// Package contract is the engine's side of the agreement with providers: what
// is proposed to them (Proposed), what they may plan (CheckPlanned) and what
// they may return once it is done (CheckApplied). The rules are those of
// Terraform's resource lifecycle, so that any Terraform provider can be held to
// them.
//
// Every function is pure, takes unmarked values that conform to the schema's
// implied type, and costs time linear in the size of the values (but for the
// sorting that cty does of large sets). It plans nothing itself, and it calls
// no provider.
package contract
