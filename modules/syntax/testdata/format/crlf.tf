a   =   1
bbbb=2 #x
#y
b {
 c=<<A
foo
A
}
