variable "a" {
  type = "${string}"
}
variable "b" {
  type = "${"string"}"
}
variable "c" {
  type = ( "string" )
}
variable "d" {
  type =    string # c
  default = "${<<EOT
${x}
EOT
  }"
}
  resource   /* c */ "a"  "b" /* d */ { a = "${"${a}b"}" }
resource a "b" {}
locals { a = "${"%{if x}a%{endif}"}" }
locals { a = "${{ for k, v in x : k => v}}" }
locals { 
b = "${<<EOT
x
EOT
}y" 
c = "${-<<EOT
x
EOT
}"
d = "${
  
  
a 
  
}"
e = "${a /* x
y */}"
h = "${<<-EOT
x
EOT
}"
i=  [
"${a}",
  ]
}
