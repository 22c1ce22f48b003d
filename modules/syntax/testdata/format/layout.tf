/* head */ terraform{
required_version=">= 1.5"
	backend "local"{
path="x" # where
  }
}
locals{ a={b=1,c=2} }


locals {
aaa=1 # one
  b =  22//two
# a comment
      # another
ccc="%{ for x in y ~}  x %{endfor }"
d=[1,2,
3,
]
e={
"b":1,(c)=2
long_key = f( x... )
}
f = <<-X
   hi ${ a }
     X
g=-  1
h=! b
i= x?y:z
j= b.*.c[ * ]
k=provider::x::y(1)
l=b==c&&d||!e
m = [for  x  in  y:x  if x!=""]
}
resource a b{
count=2
dynamic   "x"   {
for_each=var.y
content{
k=x.value
}
}

lifecycle{ignore_changes=[a,b] }
   }
