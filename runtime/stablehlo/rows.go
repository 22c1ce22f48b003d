package stablehlo

// Gather returns the rows of a table, rows × width, that ids name: i32 of any count. An
// id outside the table takes the nearest row.
func (v *Value) Gather(ids *Value) *Value {
	dims := []int{ids.Size(), v.Dims[1]}
	ids = ids.Reshape(ids.Size(), 1)
	return v.function.add(v.Type, dims, `"stablehlo.gather"(%s, %s) <{dimension_numbers = #stablehlo.gather<`+
		`offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, `+
		`slice_sizes = array<i64: 1, %d>, indices_are_sorted = false}> : %s`,
		v.name, ids.name, v.Dims[1], signature(v.Type, dims, v, ids))
}

// ScatterAdd returns the table after an addition of rows: ids name the row of the table
// for each of them. An id outside the
// table has no effect.
func (v *Value) ScatterAdd(ids, rows *Value) *Value {
	ids = ids.Reshape(ids.Size(), 1)
	t := v.Type
	return v.function.add(t, v.Dims, `"stablehlo.scatter"(%[1]s, %[2]s, %[3]s) <{scatter_dimension_numbers = #stablehlo.scatter<`+
		`update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, `+
		`indices_are_sorted = false, unique_indices = false}> ({
    ^bb0(%%x: tensor<%[4]s>, %%y: tensor<%[4]s>):
      %%z = stablehlo.add %%x, %%y : tensor<%[4]s>
      stablehlo.return %%z : tensor<%[4]s>
    }) : %[5]s`, v.name, ids.name, rows.name, t, signature(t, v.Dims, v, ids, rows))
}
