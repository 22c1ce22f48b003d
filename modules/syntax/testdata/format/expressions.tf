variable "q" {
  type = "string"
}
variable q2 { type = "list" }
variable "q3" { 
 type = "map" 
 }
variable "q4" {
  type = list
  default = ["${var.x}"]
}
variable "q5" {
  type = map
  description = "${"x"}"
}
variable "q6" {
  type = set
  validation {
    condition = "${true}"
  type = "list"
  }
}
variable "q7" {
  type = "number"
}
variable "q8" {
  type = "any"
}
variable "q9" {
  type = "list(string)"
}
variable "q10" {
  type = list(map)
}
variable "q11" {
  type = list(  "string")
}
variable "q12" {
  type = "set"
}
variable "q13" {
  type = "bool"
  nullable="${false}"
}
locals {
  type = "string"
  a = "${var.a}"
  b = "${var.a}x"
  c = "${ var.a }"
  d = "${  var.a  }"
  e = "${"${var.a}"}"
  f = "${
    var.a
  }"
  g = "${
    var.a +
    1
  }"
  h = "${"a"}"
  i = "${ "a" }${ "b" }"
  j = ["${var.a}"]
  k = { x = "${var.a}" }
  l = upper("${var.a}")
  m = "${~ var.a ~}"
  n = "${var.a ? "x" : "y"}"
  o = "${upper("${var.a}")}"
  p = "${[
    1,
    2
  ]}"
  q = "${{
    a = 1
  }}"
  r = "${upper(
    "x"
  )}"
  s = "%{ if true }x%{ endif }"
  t = "$${x}"
  u = "${1}${2}"
  v = ("${var.a}")
  w = "${(var.a)}"
  x = "${<<EOT
hi
EOT
}"
  y = <<EOT
${var.a}
EOT
  z = "${var.a}" # comment
  aa = "${var.a /* c */}"
  ab = "${/* c */ var.a}"
  ad = "${var.a[
  0]}"
  ae = "${-1}"
  af = "${!true}"
  ag = "${a.b
  .c}"
  ah = "${true ? 1 : 
  2}"
  aj = "${[for x in y :
   x]}"
  ak = "${upper(
    "x"
  )} "
  al = "${a
   ? b : c}"
  am = "${var.a["${var.b}"]}"
  an = "${format("%s", "x")}"
  ao = "${"a\"b"}"
  ap = "${(
    1
    )}"
  aq = "${(1
  ) + (2
  )}"
  ar = "${f(
  1) + g(2
  )}"
}
