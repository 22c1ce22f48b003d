module @small_step {
  func.func public @main(%a0: tensor<3x3x1x4xf32>, %a1: tensor<4xf32>, %a2: tensor<4xf32>, %a3: tensor<4xf32>, %a4: tensor<16x3xf32>, %a5: tensor<3xf32>, %a6: tensor<4xf32>, %a7: tensor<4xf32>, %a8: tensor<3x3x1x4xf32> {tf.aliasing_output = 0 : i32}, %a9: tensor<4xf32> {tf.aliasing_output = 1 : i32}, %a10: tensor<4xf32> {tf.aliasing_output = 2 : i32}, %a11: tensor<4xf32> {tf.aliasing_output = 3 : i32}, %a12: tensor<16x3xf32> {tf.aliasing_output = 4 : i32}, %a13: tensor<3xf32> {tf.aliasing_output = 5 : i32}, %a14: tensor<4xf32> {tf.aliasing_output = 6 : i32}, %a15: tensor<4xf32> {tf.aliasing_output = 7 : i32}, %a16: tensor<2xf32> {tf.aliasing_output = 8 : i32}, %a17: tensor<2x6x6x1xf32>, %a18: tensor<2x1xi32>, %a19: tensor<2xf32>, %a20: tensor<2xui64>) -> (tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2xf32>) {
    %0 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%a19 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
    %2 = stablehlo.convert %a17 : (tensor<2x6x6x1xf32>) -> tensor<2x6x6x1xbf16>
    %3 = stablehlo.convert %a0 : (tensor<3x3x1x4xf32>) -> tensor<3x3x1x4xbf16>
    %4 = stablehlo.convolution(%2, %3) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x6x6x1xbf16>, tensor<3x3x1x4xbf16>) -> tensor<2x4x4x4xbf16>
    %5 = stablehlo.convert %a1 : (tensor<4xf32>) -> tensor<4xbf16>
    %6 = stablehlo.broadcast_in_dim %5, dims = [3] : (tensor<4xbf16>) -> tensor<2x4x4x4xbf16>
    %7 = stablehlo.add %4, %6 : tensor<2x4x4x4xbf16>
    %8 = stablehlo.constant dense<0.000000000e+00> : tensor<bf16>
    %9 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<bf16>) -> tensor<2x4x4x4xbf16>
    %10 = stablehlo.maximum %7, %9 : tensor<2x4x4x4xbf16>
    %11 = stablehlo.convert %10 : (tensor<2x4x4x4xbf16>) -> tensor<2x4x4x4xf32>
    %12 = stablehlo.compare GT, %1, %0 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %13 = stablehlo.constant dense<1.000000000e+00> : tensor<f32>
    %14 = stablehlo.select %12, %1, %13 : tensor<i1>, tensor<f32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %16 = stablehlo.divide %a19, %15 : tensor<2xf32>
    %17 = stablehlo.constant dense<6.250000000e-02> : tensor<f32>
    %18 = stablehlo.broadcast_in_dim %17, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %19 = stablehlo.multiply %16, %18 : tensor<2xf32>
    %20 = stablehlo.broadcast_in_dim %19, dims = [0] : (tensor<2xf32>) -> tensor<2x4x4x4xf32>
    %21 = stablehlo.multiply %11, %20 : tensor<2x4x4x4xf32>
    %22 = stablehlo.reduce(%21 init: %0) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x4x4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %23 = stablehlo.broadcast_in_dim %22, dims = [3] : (tensor<4xf32>) -> tensor<2x4x4x4xf32>
    %24 = stablehlo.subtract %11, %23 : tensor<2x4x4x4xf32>
    %25 = stablehlo.multiply %24, %24 : tensor<2x4x4x4xf32>
    %26 = stablehlo.multiply %25, %20 : tensor<2x4x4x4xf32>
    %27 = stablehlo.reduce(%26 init: %0) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x4x4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %28 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %29 = stablehlo.multiply %22, %28 : tensor<4xf32>
    %30 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %31 = stablehlo.multiply %27, %30 : tensor<4xf32>
    %32 = stablehlo.constant dense<1.000000047e-03> : tensor<f32>
    %33 = stablehlo.broadcast_in_dim %32, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %34 = stablehlo.add %27, %33 : tensor<4xf32>
    %35 = stablehlo.rsqrt %34 : tensor<4xf32>
    %36 = stablehlo.multiply %35, %a2 : tensor<4xf32>
    %37 = stablehlo.broadcast_in_dim %36, dims = [3] : (tensor<4xf32>) -> tensor<2x4x4x4xf32>
    %38 = stablehlo.multiply %24, %37 : tensor<2x4x4x4xf32>
    %39 = stablehlo.broadcast_in_dim %a3, dims = [3] : (tensor<4xf32>) -> tensor<2x4x4x4xf32>
    %40 = stablehlo.add %38, %39 : tensor<2x4x4x4xf32>
    %41 = stablehlo.convert %40 : (tensor<2x4x4x4xf32>) -> tensor<2x4x4x4xbf16>
    %42 = stablehlo.slice %41 [0:2, 0:3:2, 0:3:2, 0:4] : (tensor<2x4x4x4xbf16>) -> tensor<2x2x2x4xbf16>
    %43 = stablehlo.constant dense<0> : tensor<i32>
    %44 = stablehlo.broadcast_in_dim %43, dims = [] : (tensor<i32>) -> tensor<2x2x2x4xi32>
    %45 = stablehlo.slice %41 [0:2, 0:3:2, 1:4:2, 0:4] : (tensor<2x4x4x4xbf16>) -> tensor<2x2x2x4xbf16>
    %46 = stablehlo.constant dense<1> : tensor<i32>
    %47 = stablehlo.broadcast_in_dim %46, dims = [] : (tensor<i32>) -> tensor<2x2x2x4xi32>
    %48 = stablehlo.compare GT, %45, %42 : (tensor<2x2x2x4xbf16>, tensor<2x2x2x4xbf16>) -> tensor<2x2x2x4xi1>
    %49 = stablehlo.select %48, %47, %44 : tensor<2x2x2x4xi1>, tensor<2x2x2x4xi32>
    %50 = stablehlo.maximum %42, %45 : tensor<2x2x2x4xbf16>
    %51 = stablehlo.slice %41 [0:2, 1:4:2, 0:3:2, 0:4] : (tensor<2x4x4x4xbf16>) -> tensor<2x2x2x4xbf16>
    %52 = stablehlo.constant dense<2> : tensor<i32>
    %53 = stablehlo.broadcast_in_dim %52, dims = [] : (tensor<i32>) -> tensor<2x2x2x4xi32>
    %54 = stablehlo.compare GT, %51, %50 : (tensor<2x2x2x4xbf16>, tensor<2x2x2x4xbf16>) -> tensor<2x2x2x4xi1>
    %55 = stablehlo.select %54, %53, %49 : tensor<2x2x2x4xi1>, tensor<2x2x2x4xi32>
    %56 = stablehlo.maximum %50, %51 : tensor<2x2x2x4xbf16>
    %57 = stablehlo.slice %41 [0:2, 1:4:2, 1:4:2, 0:4] : (tensor<2x4x4x4xbf16>) -> tensor<2x2x2x4xbf16>
    %58 = stablehlo.constant dense<3> : tensor<i32>
    %59 = stablehlo.broadcast_in_dim %58, dims = [] : (tensor<i32>) -> tensor<2x2x2x4xi32>
    %60 = stablehlo.compare GT, %57, %56 : (tensor<2x2x2x4xbf16>, tensor<2x2x2x4xbf16>) -> tensor<2x2x2x4xi1>
    %61 = stablehlo.select %60, %59, %55 : tensor<2x2x2x4xi1>, tensor<2x2x2x4xi32>
    %62 = stablehlo.maximum %56, %57 : tensor<2x2x2x4xbf16>
    %63 = stablehlo.constant dense<4995934865790634630> : tensor<ui64>
    %64 = stablehlo.broadcast_in_dim %63, dims = [] : (tensor<ui64>) -> tensor<2xui64>
    %65 = stablehlo.xor %a20, %64 : tensor<2xui64>
    %66 = stablehlo.constant dense<30> : tensor<ui64>
    %67 = stablehlo.broadcast_in_dim %66, dims = [] : (tensor<ui64>) -> tensor<2xui64>
    %68 = stablehlo.shift_right_logical %65, %67 : tensor<2xui64>
    %69 = stablehlo.xor %65, %68 : tensor<2xui64>
    %70 = stablehlo.constant dense<13787848793156543929> : tensor<ui64>
    %71 = stablehlo.broadcast_in_dim %70, dims = [] : (tensor<ui64>) -> tensor<2xui64>
    %72 = stablehlo.multiply %69, %71 : tensor<2xui64>
    %73 = stablehlo.constant dense<27> : tensor<ui64>
    %74 = stablehlo.broadcast_in_dim %73, dims = [] : (tensor<ui64>) -> tensor<2xui64>
    %75 = stablehlo.shift_right_logical %72, %74 : tensor<2xui64>
    %76 = stablehlo.xor %72, %75 : tensor<2xui64>
    %77 = stablehlo.constant dense<10723151780598845931> : tensor<ui64>
    %78 = stablehlo.broadcast_in_dim %77, dims = [] : (tensor<ui64>) -> tensor<2xui64>
    %79 = stablehlo.multiply %76, %78 : tensor<2xui64>
    %80 = stablehlo.constant dense<31> : tensor<ui64>
    %81 = stablehlo.broadcast_in_dim %80, dims = [] : (tensor<ui64>) -> tensor<2xui64>
    %82 = stablehlo.shift_right_logical %79, %81 : tensor<2xui64>
    %83 = stablehlo.xor %79, %82 : tensor<2xui64>
    %84 = stablehlo.iota dim = 1 : tensor<2x8xui64>
    %85 = stablehlo.constant dense<1> : tensor<ui64>
    %86 = stablehlo.broadcast_in_dim %85, dims = [] : (tensor<ui64>) -> tensor<2x8xui64>
    %87 = stablehlo.add %84, %86 : tensor<2x8xui64>
    %88 = stablehlo.constant dense<11400714819323198485> : tensor<ui64>
    %89 = stablehlo.broadcast_in_dim %88, dims = [] : (tensor<ui64>) -> tensor<2x8xui64>
    %90 = stablehlo.multiply %87, %89 : tensor<2x8xui64>
    %91 = stablehlo.broadcast_in_dim %83, dims = [0] : (tensor<2xui64>) -> tensor<2x8xui64>
    %92 = stablehlo.add %91, %90 : tensor<2x8xui64>
    %93 = stablehlo.broadcast_in_dim %66, dims = [] : (tensor<ui64>) -> tensor<2x8xui64>
    %94 = stablehlo.shift_right_logical %92, %93 : tensor<2x8xui64>
    %95 = stablehlo.xor %92, %94 : tensor<2x8xui64>
    %96 = stablehlo.broadcast_in_dim %70, dims = [] : (tensor<ui64>) -> tensor<2x8xui64>
    %97 = stablehlo.multiply %95, %96 : tensor<2x8xui64>
    %98 = stablehlo.broadcast_in_dim %73, dims = [] : (tensor<ui64>) -> tensor<2x8xui64>
    %99 = stablehlo.shift_right_logical %97, %98 : tensor<2x8xui64>
    %100 = stablehlo.xor %97, %99 : tensor<2x8xui64>
    %101 = stablehlo.broadcast_in_dim %77, dims = [] : (tensor<ui64>) -> tensor<2x8xui64>
    %102 = stablehlo.multiply %100, %101 : tensor<2x8xui64>
    %103 = stablehlo.broadcast_in_dim %80, dims = [] : (tensor<ui64>) -> tensor<2x8xui64>
    %104 = stablehlo.shift_right_logical %102, %103 : tensor<2x8xui64>
    %105 = stablehlo.xor %102, %104 : tensor<2x8xui64>
    %106 = stablehlo.constant dense<4294967295> : tensor<ui64>
    %107 = stablehlo.broadcast_in_dim %106, dims = [] : (tensor<ui64>) -> tensor<2x8xui64>
    %108 = stablehlo.and %105, %107 : tensor<2x8xui64>
    %109 = stablehlo.constant dense<32> : tensor<ui64>
    %110 = stablehlo.broadcast_in_dim %109, dims = [] : (tensor<ui64>) -> tensor<2x8xui64>
    %111 = stablehlo.shift_right_logical %105, %110 : tensor<2x8xui64>
    %112 = stablehlo.reshape %108 : (tensor<2x8xui64>) -> tensor<2x8x1xui64>
    %113 = stablehlo.reshape %111 : (tensor<2x8xui64>) -> tensor<2x8x1xui64>
    %114 = stablehlo.concatenate %112, %113, dim = 2 : (tensor<2x8x1xui64>, tensor<2x8x1xui64>) -> tensor<2x8x2xui64>
    %115 = stablehlo.reshape %114 : (tensor<2x8x2xui64>) -> tensor<2x16xui64>
    %116 = stablehlo.slice %115 [0:2, 0:16] : (tensor<2x16xui64>) -> tensor<2x16xui64>
    %117 = stablehlo.constant dense<1073741824> : tensor<ui64>
    %118 = stablehlo.broadcast_in_dim %117, dims = [] : (tensor<ui64>) -> tensor<2x16xui64>
    %119 = stablehlo.compare GE, %116, %118 : (tensor<2x16xui64>, tensor<2x16xui64>) -> tensor<2x16xi1>
    %120 = stablehlo.reshape %119 : (tensor<2x16xi1>) -> tensor<2x2x2x4xi1>
    %121 = stablehlo.constant dense<1.333333373e+00> : tensor<bf16>
    %122 = stablehlo.broadcast_in_dim %121, dims = [] : (tensor<bf16>) -> tensor<2x2x2x4xbf16>
    %123 = stablehlo.multiply %62, %122 : tensor<2x2x2x4xbf16>
    %124 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<bf16>) -> tensor<2x2x2x4xbf16>
    %125 = stablehlo.select %120, %123, %124 : tensor<2x2x2x4xi1>, tensor<2x2x2x4xbf16>
    %126 = stablehlo.reshape %125 : (tensor<2x2x2x4xbf16>) -> tensor<2x16xbf16>
    %127 = stablehlo.convert %a4 : (tensor<16x3xf32>) -> tensor<16x3xbf16>
    %128 = stablehlo.dot_general %126, %127, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16xbf16>, tensor<16x3xbf16>) -> tensor<2x3xf32>
    %129 = stablehlo.broadcast_in_dim %a5, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
    %130 = stablehlo.add %128, %129 : tensor<2x3xf32>
    %131 = stablehlo.broadcast_in_dim %13, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %132 = stablehlo.multiply %a19, %131 : tensor<2xf32>
    %133 = stablehlo.broadcast_in_dim %132, dims = [0] : (tensor<2xf32>) -> tensor<2x1xf32>
    %134 = stablehlo.reshape %133 : (tensor<2x1xf32>) -> tensor<2xf32>
    %135 = stablehlo.reshape %a18 : (tensor<2x1xi32>) -> tensor<2xi32>
    %136 = stablehlo.iota dim = 1 : tensor<2x3xi32>
    %137 = stablehlo.broadcast_in_dim %135, dims = [0] : (tensor<2xi32>) -> tensor<2x3xi32>
    %138 = stablehlo.compare EQ, %136, %137 : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi1>
    %139 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %140 = stablehlo.reduce(%130 init: %139) applies stablehlo.maximum across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %141 = stablehlo.broadcast_in_dim %140, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
    %142 = stablehlo.subtract %130, %141 : tensor<2x3xf32>
    %143 = stablehlo.exponential %142 : tensor<2x3xf32>
    %144 = stablehlo.reduce(%143 init: %0) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %145 = stablehlo.convert %138 : (tensor<2x3xi1>) -> tensor<2x3xf32>
    %146 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %147 = stablehlo.select %138, %142, %146 : tensor<2x3xi1>, tensor<2x3xf32>
    %148 = stablehlo.reduce(%147 init: %0) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %149 = stablehlo.log %144 : tensor<2xf32>
    %150 = stablehlo.subtract %149, %148 : tensor<2xf32>
    %151 = stablehlo.multiply %134, %150 : tensor<2xf32>
    %152 = stablehlo.reduce(%151 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
    %153 = stablehlo.reshape %152 : (tensor<f32>) -> tensor<1xf32>
    %154 = stablehlo.broadcast_in_dim %140, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
    %155 = stablehlo.compare EQ, %130, %154 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    %156 = stablehlo.broadcast_in_dim %58, dims = [] : (tensor<i32>) -> tensor<2x3xi32>
    %157 = stablehlo.select %155, %136, %156 : tensor<2x3xi1>, tensor<2x3xi32>
    %158 = stablehlo.reduce(%157 init: %58) applies stablehlo.minimum across dimensions = [1] : (tensor<2x3xi32>, tensor<i32>) -> tensor<2xi32>
    %159 = stablehlo.compare EQ, %158, %135 : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %160 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %161 = stablehlo.select %159, %134, %160 : tensor<2xi1>, tensor<2xf32>
    %162 = stablehlo.reduce(%161 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
    %163 = stablehlo.reshape %162 : (tensor<f32>) -> tensor<1xf32>
    %164 = stablehlo.broadcast_in_dim %144, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
    %165 = stablehlo.divide %143, %164 : tensor<2x3xf32>
    %166 = stablehlo.broadcast_in_dim %13, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %167 = stablehlo.multiply %145, %166 : tensor<2x3xf32>
    %168 = stablehlo.subtract %165, %167 : tensor<2x3xf32>
    %169 = stablehlo.concatenate %153, %163, dim = 0 : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
    %170 = stablehlo.broadcast_in_dim %134, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
    %171 = stablehlo.multiply %168, %170 : tensor<2x3xf32>
    %172 = stablehlo.reduce(%171 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
    %173 = stablehlo.convert %171 : (tensor<2x3xf32>) -> tensor<2x3xbf16>
    %174 = stablehlo.dot_general %126, %173, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16xbf16>, tensor<2x3xbf16>) -> tensor<16x3xf32>
    %175 = stablehlo.dot_general %173, %127, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x3xbf16>, tensor<16x3xbf16>) -> tensor<2x16xf32>
    %176 = stablehlo.convert %175 : (tensor<2x16xf32>) -> tensor<2x16xbf16>
    %177 = stablehlo.reshape %176 : (tensor<2x16xbf16>) -> tensor<2x2x2x4xbf16>
    %178 = stablehlo.broadcast_in_dim %121, dims = [] : (tensor<bf16>) -> tensor<2x2x2x4xbf16>
    %179 = stablehlo.multiply %177, %178 : tensor<2x2x2x4xbf16>
    %180 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<bf16>) -> tensor<2x2x2x4xbf16>
    %181 = stablehlo.select %120, %179, %180 : tensor<2x2x2x4xi1>, tensor<2x2x2x4xbf16>
    %182 = stablehlo.iota dim = 2 : tensor<2x2x2x2x2x4xi32>
    %183 = stablehlo.iota dim = 4 : tensor<2x2x2x2x2x4xi32>
    %184 = stablehlo.broadcast_in_dim %52, dims = [] : (tensor<i32>) -> tensor<2x2x2x2x2x4xi32>
    %185 = stablehlo.multiply %182, %184 : tensor<2x2x2x2x2x4xi32>
    %186 = stablehlo.add %185, %183 : tensor<2x2x2x2x2x4xi32>
    %187 = stablehlo.broadcast_in_dim %181, dims = [0, 1, 3, 5] : (tensor<2x2x2x4xbf16>) -> tensor<2x2x2x2x2x4xbf16>
    %188 = stablehlo.broadcast_in_dim %61, dims = [0, 1, 3, 5] : (tensor<2x2x2x4xi32>) -> tensor<2x2x2x2x2x4xi32>
    %189 = stablehlo.compare EQ, %188, %186 : (tensor<2x2x2x2x2x4xi32>, tensor<2x2x2x2x2x4xi32>) -> tensor<2x2x2x2x2x4xi1>
    %190 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<bf16>) -> tensor<2x2x2x2x2x4xbf16>
    %191 = stablehlo.select %189, %187, %190 : tensor<2x2x2x2x2x4xi1>, tensor<2x2x2x2x2x4xbf16>
    %192 = stablehlo.reshape %191 : (tensor<2x2x2x2x2x4xbf16>) -> tensor<2x4x4x4xbf16>
    %193 = stablehlo.convert %192 : (tensor<2x4x4x4xbf16>) -> tensor<2x4x4x4xf32>
    %194 = stablehlo.broadcast_in_dim %35, dims = [3] : (tensor<4xf32>) -> tensor<2x4x4x4xf32>
    %195 = stablehlo.multiply %24, %194 : tensor<2x4x4x4xf32>
    %196 = stablehlo.reduce(%193 init: %0) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x4x4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %197 = stablehlo.multiply %193, %195 : tensor<2x4x4x4xf32>
    %198 = stablehlo.reduce(%197 init: %0) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x4x4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %199 = stablehlo.broadcast_in_dim %196, dims = [3] : (tensor<4xf32>) -> tensor<2x4x4x4xf32>
    %200 = stablehlo.broadcast_in_dim %198, dims = [3] : (tensor<4xf32>) -> tensor<2x4x4x4xf32>
    %201 = stablehlo.multiply %195, %200 : tensor<2x4x4x4xf32>
    %202 = stablehlo.add %199, %201 : tensor<2x4x4x4xf32>
    %203 = stablehlo.multiply %20, %202 : tensor<2x4x4x4xf32>
    %204 = stablehlo.subtract %193, %203 : tensor<2x4x4x4xf32>
    %205 = stablehlo.multiply %a2, %35 : tensor<4xf32>
    %206 = stablehlo.broadcast_in_dim %205, dims = [3] : (tensor<4xf32>) -> tensor<2x4x4x4xf32>
    %207 = stablehlo.multiply %204, %206 : tensor<2x4x4x4xf32>
    %208 = stablehlo.convert %207 : (tensor<2x4x4x4xf32>) -> tensor<2x4x4x4xbf16>
    %209 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<bf16>) -> tensor<2x4x4x4xbf16>
    %210 = stablehlo.compare GT, %10, %209 : (tensor<2x4x4x4xbf16>, tensor<2x4x4x4xbf16>) -> tensor<2x4x4x4xi1>
    %211 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<bf16>) -> tensor<2x4x4x4xbf16>
    %212 = stablehlo.select %210, %208, %211 : tensor<2x4x4x4xi1>, tensor<2x4x4x4xbf16>
    %213 = stablehlo.convert %212 : (tensor<2x4x4x4xbf16>) -> tensor<2x4x4x4xf32>
    %214 = stablehlo.reduce(%213 init: %0) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x4x4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %215 = stablehlo.convolution(%2, %212) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x6x6x1xbf16>, tensor<2x4x4x4xbf16>) -> tensor<3x3x1x4xbf16>
    %216 = stablehlo.convert %215 : (tensor<3x3x1x4xbf16>) -> tensor<3x3x1x4xf32>
    %217 = stablehlo.add %a8, %216 : tensor<3x3x1x4xf32>
    %218 = stablehlo.add %a9, %214 : tensor<4xf32>
    %219 = stablehlo.add %a10, %198 : tensor<4xf32>
    %220 = stablehlo.add %a11, %196 : tensor<4xf32>
    %221 = stablehlo.add %a12, %174 : tensor<16x3xf32>
    %222 = stablehlo.add %a13, %172 : tensor<3xf32>
    %223 = stablehlo.add %a14, %29 : tensor<4xf32>
    %224 = stablehlo.add %a15, %31 : tensor<4xf32>
    %225 = stablehlo.add %a16, %169 : tensor<2xf32>
    return %217, %218, %219, %220, %221, %222, %223, %224, %225 : tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2xf32>
  }
}
