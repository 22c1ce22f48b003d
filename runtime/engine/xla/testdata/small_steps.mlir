module @small_steps {
  func.func private @step(%a0: tensor<3x3x1x4xf32>, %a1: tensor<4xf32>, %a2: tensor<4xf32>, %a3: tensor<4xf32>, %a4: tensor<16x3xf32>, %a5: tensor<3xf32>, %a6: tensor<4xf32>, %a7: tensor<4xf32>, %a8: tensor<3x3x1x4xf32>, %a9: tensor<4xf32>, %a10: tensor<4xf32>, %a11: tensor<4xf32>, %a12: tensor<16x3xf32>, %a13: tensor<3xf32>, %a14: tensor<4xf32>, %a15: tensor<4xf32>, %a16: tensor<2xf32>, %a17: tensor<2x6x6x1xf32>, %a18: tensor<2x1xi32>, %a19: tensor<2xf32>, %a20: tensor<2xui64>) -> (tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2xf32>) {
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
    %42 = stablehlo.slice %41 [0:2, 0:4, 0:4, 0:4] : (tensor<2x4x4x4xbf16>) -> tensor<2x4x4x4xbf16>
    %43 = stablehlo.slice %42 [0:2, 0:4, 0:4, 0:4] : (tensor<2x4x4x4xbf16>) -> tensor<2x4x4x4xbf16>
    %44 = stablehlo.reshape %43 : (tensor<2x4x4x4xbf16>) -> tensor<2x2x2x2x2x4xbf16>
    %45 = stablehlo.constant dense<0xFF80> : tensor<bf16>
    %46 = stablehlo.reduce(%44 init: %45) applies stablehlo.maximum across dimensions = [2, 4] : (tensor<2x2x2x2x2x4xbf16>, tensor<bf16>) -> tensor<2x2x2x4xbf16>
    %47 = stablehlo.constant dense<4995934865790634630> : tensor<ui64>
    %48 = stablehlo.broadcast_in_dim %47, dims = [] : (tensor<ui64>) -> tensor<2xui64>
    %49 = stablehlo.xor %a20, %48 : tensor<2xui64>
    %50 = stablehlo.constant dense<30> : tensor<ui64>
    %51 = stablehlo.broadcast_in_dim %50, dims = [] : (tensor<ui64>) -> tensor<2xui64>
    %52 = stablehlo.shift_right_logical %49, %51 : tensor<2xui64>
    %53 = stablehlo.xor %49, %52 : tensor<2xui64>
    %54 = stablehlo.constant dense<13787848793156543929> : tensor<ui64>
    %55 = stablehlo.broadcast_in_dim %54, dims = [] : (tensor<ui64>) -> tensor<2xui64>
    %56 = stablehlo.multiply %53, %55 : tensor<2xui64>
    %57 = stablehlo.constant dense<27> : tensor<ui64>
    %58 = stablehlo.broadcast_in_dim %57, dims = [] : (tensor<ui64>) -> tensor<2xui64>
    %59 = stablehlo.shift_right_logical %56, %58 : tensor<2xui64>
    %60 = stablehlo.xor %56, %59 : tensor<2xui64>
    %61 = stablehlo.constant dense<10723151780598845931> : tensor<ui64>
    %62 = stablehlo.broadcast_in_dim %61, dims = [] : (tensor<ui64>) -> tensor<2xui64>
    %63 = stablehlo.multiply %60, %62 : tensor<2xui64>
    %64 = stablehlo.constant dense<31> : tensor<ui64>
    %65 = stablehlo.broadcast_in_dim %64, dims = [] : (tensor<ui64>) -> tensor<2xui64>
    %66 = stablehlo.shift_right_logical %63, %65 : tensor<2xui64>
    %67 = stablehlo.xor %63, %66 : tensor<2xui64>
    %68 = stablehlo.iota dim = 1 : tensor<2x8xui64>
    %69 = stablehlo.constant dense<1> : tensor<ui64>
    %70 = stablehlo.broadcast_in_dim %69, dims = [] : (tensor<ui64>) -> tensor<2x8xui64>
    %71 = stablehlo.add %68, %70 : tensor<2x8xui64>
    %72 = stablehlo.constant dense<11400714819323198485> : tensor<ui64>
    %73 = stablehlo.broadcast_in_dim %72, dims = [] : (tensor<ui64>) -> tensor<2x8xui64>
    %74 = stablehlo.multiply %71, %73 : tensor<2x8xui64>
    %75 = stablehlo.broadcast_in_dim %67, dims = [0] : (tensor<2xui64>) -> tensor<2x8xui64>
    %76 = stablehlo.add %75, %74 : tensor<2x8xui64>
    %77 = stablehlo.broadcast_in_dim %50, dims = [] : (tensor<ui64>) -> tensor<2x8xui64>
    %78 = stablehlo.shift_right_logical %76, %77 : tensor<2x8xui64>
    %79 = stablehlo.xor %76, %78 : tensor<2x8xui64>
    %80 = stablehlo.broadcast_in_dim %54, dims = [] : (tensor<ui64>) -> tensor<2x8xui64>
    %81 = stablehlo.multiply %79, %80 : tensor<2x8xui64>
    %82 = stablehlo.broadcast_in_dim %57, dims = [] : (tensor<ui64>) -> tensor<2x8xui64>
    %83 = stablehlo.shift_right_logical %81, %82 : tensor<2x8xui64>
    %84 = stablehlo.xor %81, %83 : tensor<2x8xui64>
    %85 = stablehlo.broadcast_in_dim %61, dims = [] : (tensor<ui64>) -> tensor<2x8xui64>
    %86 = stablehlo.multiply %84, %85 : tensor<2x8xui64>
    %87 = stablehlo.broadcast_in_dim %64, dims = [] : (tensor<ui64>) -> tensor<2x8xui64>
    %88 = stablehlo.shift_right_logical %86, %87 : tensor<2x8xui64>
    %89 = stablehlo.xor %86, %88 : tensor<2x8xui64>
    %90 = stablehlo.constant dense<4294967295> : tensor<ui64>
    %91 = stablehlo.broadcast_in_dim %90, dims = [] : (tensor<ui64>) -> tensor<2x8xui64>
    %92 = stablehlo.and %89, %91 : tensor<2x8xui64>
    %93 = stablehlo.constant dense<32> : tensor<ui64>
    %94 = stablehlo.broadcast_in_dim %93, dims = [] : (tensor<ui64>) -> tensor<2x8xui64>
    %95 = stablehlo.shift_right_logical %89, %94 : tensor<2x8xui64>
    %96 = stablehlo.reshape %92 : (tensor<2x8xui64>) -> tensor<2x8x1xui64>
    %97 = stablehlo.reshape %95 : (tensor<2x8xui64>) -> tensor<2x8x1xui64>
    %98 = stablehlo.concatenate %96, %97, dim = 2 : (tensor<2x8x1xui64>, tensor<2x8x1xui64>) -> tensor<2x8x2xui64>
    %99 = stablehlo.reshape %98 : (tensor<2x8x2xui64>) -> tensor<2x16xui64>
    %100 = stablehlo.slice %99 [0:2, 0:16] : (tensor<2x16xui64>) -> tensor<2x16xui64>
    %101 = stablehlo.constant dense<1073741824> : tensor<ui64>
    %102 = stablehlo.broadcast_in_dim %101, dims = [] : (tensor<ui64>) -> tensor<2x16xui64>
    %103 = stablehlo.compare GE, %100, %102 : (tensor<2x16xui64>, tensor<2x16xui64>) -> tensor<2x16xi1>
    %104 = stablehlo.reshape %103 : (tensor<2x16xi1>) -> tensor<2x2x2x4xi1>
    %105 = stablehlo.constant dense<1.333333373e+00> : tensor<bf16>
    %106 = stablehlo.broadcast_in_dim %105, dims = [] : (tensor<bf16>) -> tensor<2x2x2x4xbf16>
    %107 = stablehlo.multiply %46, %106 : tensor<2x2x2x4xbf16>
    %108 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<bf16>) -> tensor<2x2x2x4xbf16>
    %109 = stablehlo.select %104, %107, %108 : tensor<2x2x2x4xi1>, tensor<2x2x2x4xbf16>
    %110 = stablehlo.reshape %109 : (tensor<2x2x2x4xbf16>) -> tensor<2x16xbf16>
    %111 = stablehlo.convert %a4 : (tensor<16x3xf32>) -> tensor<16x3xbf16>
    %112 = stablehlo.dot_general %110, %111, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16xbf16>, tensor<16x3xbf16>) -> tensor<2x3xf32>
    %113 = stablehlo.broadcast_in_dim %a5, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
    %114 = stablehlo.add %112, %113 : tensor<2x3xf32>
    %115 = stablehlo.broadcast_in_dim %13, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %116 = stablehlo.multiply %a19, %115 : tensor<2xf32>
    %117 = stablehlo.broadcast_in_dim %116, dims = [0] : (tensor<2xf32>) -> tensor<2x1xf32>
    %118 = stablehlo.reshape %117 : (tensor<2x1xf32>) -> tensor<2xf32>
    %119 = stablehlo.reshape %a18 : (tensor<2x1xi32>) -> tensor<2xi32>
    %120 = stablehlo.iota dim = 1 : tensor<2x3xi32>
    %121 = stablehlo.broadcast_in_dim %119, dims = [0] : (tensor<2xi32>) -> tensor<2x3xi32>
    %122 = stablehlo.compare EQ, %120, %121 : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi1>
    %123 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %124 = stablehlo.reduce(%114 init: %123) applies stablehlo.maximum across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %125 = stablehlo.broadcast_in_dim %124, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
    %126 = stablehlo.subtract %114, %125 : tensor<2x3xf32>
    %127 = stablehlo.exponential %126 : tensor<2x3xf32>
    %128 = stablehlo.reduce(%127 init: %0) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %129 = stablehlo.convert %122 : (tensor<2x3xi1>) -> tensor<2x3xf32>
    %130 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %131 = stablehlo.select %122, %126, %130 : tensor<2x3xi1>, tensor<2x3xf32>
    %132 = stablehlo.reduce(%131 init: %0) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %133 = stablehlo.log %128 : tensor<2xf32>
    %134 = stablehlo.subtract %133, %132 : tensor<2xf32>
    %135 = stablehlo.multiply %118, %134 : tensor<2xf32>
    %136 = stablehlo.reduce(%135 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
    %137 = stablehlo.reshape %136 : (tensor<f32>) -> tensor<1xf32>
    %138 = stablehlo.broadcast_in_dim %124, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
    %139 = stablehlo.compare EQ, %114, %138 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    %140 = stablehlo.constant dense<3> : tensor<i32>
    %141 = stablehlo.broadcast_in_dim %140, dims = [] : (tensor<i32>) -> tensor<2x3xi32>
    %142 = stablehlo.select %139, %120, %141 : tensor<2x3xi1>, tensor<2x3xi32>
    %143 = stablehlo.reduce(%142 init: %140) applies stablehlo.minimum across dimensions = [1] : (tensor<2x3xi32>, tensor<i32>) -> tensor<2xi32>
    %144 = stablehlo.compare EQ, %143, %119 : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %145 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %146 = stablehlo.select %144, %118, %145 : tensor<2xi1>, tensor<2xf32>
    %147 = stablehlo.reduce(%146 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
    %148 = stablehlo.reshape %147 : (tensor<f32>) -> tensor<1xf32>
    %149 = stablehlo.broadcast_in_dim %128, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
    %150 = stablehlo.divide %127, %149 : tensor<2x3xf32>
    %151 = stablehlo.broadcast_in_dim %13, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %152 = stablehlo.multiply %129, %151 : tensor<2x3xf32>
    %153 = stablehlo.subtract %150, %152 : tensor<2x3xf32>
    %154 = stablehlo.concatenate %137, %148, dim = 0 : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
    %155 = stablehlo.broadcast_in_dim %118, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
    %156 = stablehlo.multiply %153, %155 : tensor<2x3xf32>
    %157 = stablehlo.reduce(%156 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
    %158 = stablehlo.convert %156 : (tensor<2x3xf32>) -> tensor<2x3xbf16>
    %159 = stablehlo.dot_general %110, %158, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16xbf16>, tensor<2x3xbf16>) -> tensor<16x3xf32>
    %160 = stablehlo.dot_general %158, %111, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x3xbf16>, tensor<16x3xbf16>) -> tensor<2x16xf32>
    %161 = stablehlo.convert %160 : (tensor<2x16xf32>) -> tensor<2x16xbf16>
    %162 = stablehlo.reshape %161 : (tensor<2x16xbf16>) -> tensor<2x2x2x4xbf16>
    %163 = stablehlo.broadcast_in_dim %105, dims = [] : (tensor<bf16>) -> tensor<2x2x2x4xbf16>
    %164 = stablehlo.multiply %162, %163 : tensor<2x2x2x4xbf16>
    %165 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<bf16>) -> tensor<2x2x2x4xbf16>
    %166 = stablehlo.select %104, %164, %165 : tensor<2x2x2x4xi1>, tensor<2x2x2x4xbf16>
    %167 = stablehlo.iota dim = 2 : tensor<2x2x2x2x2x4xf32>
    %168 = stablehlo.constant dense<-2.000000000e+00> : tensor<f32>
    %169 = stablehlo.broadcast_in_dim %168, dims = [] : (tensor<f32>) -> tensor<2x2x2x2x2x4xf32>
    %170 = stablehlo.multiply %167, %169 : tensor<2x2x2x2x2x4xf32>
    %171 = stablehlo.iota dim = 4 : tensor<2x2x2x2x2x4xf32>
    %172 = stablehlo.subtract %170, %171 : tensor<2x2x2x2x2x4xf32>
    %173 = stablehlo.broadcast_in_dim %46, dims = [0, 1, 3, 5] : (tensor<2x2x2x4xbf16>) -> tensor<2x2x2x2x2x4xbf16>
    %174 = stablehlo.compare EQ, %44, %173 : (tensor<2x2x2x2x2x4xbf16>, tensor<2x2x2x2x2x4xbf16>) -> tensor<2x2x2x2x2x4xi1>
    %175 = stablehlo.constant dense<-4.000000000e+00> : tensor<f32>
    %176 = stablehlo.broadcast_in_dim %175, dims = [] : (tensor<f32>) -> tensor<2x2x2x2x2x4xf32>
    %177 = stablehlo.select %174, %172, %176 : tensor<2x2x2x2x2x4xi1>, tensor<2x2x2x2x2x4xf32>
    %178 = stablehlo.reduce(%177 init: %123) applies stablehlo.maximum across dimensions = [2, 4] : (tensor<2x2x2x2x2x4xf32>, tensor<f32>) -> tensor<2x2x2x4xf32>
    %179 = stablehlo.broadcast_in_dim %178, dims = [0, 1, 3, 5] : (tensor<2x2x2x4xf32>) -> tensor<2x2x2x2x2x4xf32>
    %180 = stablehlo.compare EQ, %177, %179 : (tensor<2x2x2x2x2x4xf32>, tensor<2x2x2x2x2x4xf32>) -> tensor<2x2x2x2x2x4xi1>
    %181 = stablehlo.broadcast_in_dim %166, dims = [0, 1, 3, 5] : (tensor<2x2x2x4xbf16>) -> tensor<2x2x2x2x2x4xbf16>
    %182 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<bf16>) -> tensor<2x2x2x2x2x4xbf16>
    %183 = stablehlo.select %180, %181, %182 : tensor<2x2x2x2x2x4xi1>, tensor<2x2x2x2x2x4xbf16>
    %184 = stablehlo.reshape %183 : (tensor<2x2x2x2x2x4xbf16>) -> tensor<2x4x4x4xbf16>
    %185 = stablehlo.convert %184 : (tensor<2x4x4x4xbf16>) -> tensor<2x4x4x4xf32>
    %186 = stablehlo.broadcast_in_dim %35, dims = [3] : (tensor<4xf32>) -> tensor<2x4x4x4xf32>
    %187 = stablehlo.multiply %24, %186 : tensor<2x4x4x4xf32>
    %188 = stablehlo.reduce(%185 init: %0) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x4x4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %189 = stablehlo.multiply %185, %187 : tensor<2x4x4x4xf32>
    %190 = stablehlo.reduce(%189 init: %0) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x4x4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %191 = stablehlo.broadcast_in_dim %188, dims = [3] : (tensor<4xf32>) -> tensor<2x4x4x4xf32>
    %192 = stablehlo.broadcast_in_dim %190, dims = [3] : (tensor<4xf32>) -> tensor<2x4x4x4xf32>
    %193 = stablehlo.multiply %187, %192 : tensor<2x4x4x4xf32>
    %194 = stablehlo.add %191, %193 : tensor<2x4x4x4xf32>
    %195 = stablehlo.multiply %20, %194 : tensor<2x4x4x4xf32>
    %196 = stablehlo.subtract %185, %195 : tensor<2x4x4x4xf32>
    %197 = stablehlo.multiply %a2, %35 : tensor<4xf32>
    %198 = stablehlo.broadcast_in_dim %197, dims = [3] : (tensor<4xf32>) -> tensor<2x4x4x4xf32>
    %199 = stablehlo.multiply %196, %198 : tensor<2x4x4x4xf32>
    %200 = stablehlo.convert %199 : (tensor<2x4x4x4xf32>) -> tensor<2x4x4x4xbf16>
    %201 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<bf16>) -> tensor<2x4x4x4xbf16>
    %202 = stablehlo.compare GT, %10, %201 : (tensor<2x4x4x4xbf16>, tensor<2x4x4x4xbf16>) -> tensor<2x4x4x4xi1>
    %203 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<bf16>) -> tensor<2x4x4x4xbf16>
    %204 = stablehlo.select %202, %200, %203 : tensor<2x4x4x4xi1>, tensor<2x4x4x4xbf16>
    %205 = stablehlo.convert %204 : (tensor<2x4x4x4xbf16>) -> tensor<2x4x4x4xf32>
    %206 = stablehlo.reduce(%205 init: %0) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x4x4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %207 = stablehlo.convolution(%2, %204) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x6x6x1xbf16>, tensor<2x4x4x4xbf16>) -> tensor<3x3x1x4xbf16>
    %208 = stablehlo.convert %207 : (tensor<3x3x1x4xbf16>) -> tensor<3x3x1x4xf32>
    %209 = stablehlo.add %a8, %208 : tensor<3x3x1x4xf32>
    %210 = stablehlo.add %a9, %206 : tensor<4xf32>
    %211 = stablehlo.add %a10, %190 : tensor<4xf32>
    %212 = stablehlo.add %a11, %188 : tensor<4xf32>
    %213 = stablehlo.add %a12, %159 : tensor<16x3xf32>
    %214 = stablehlo.add %a13, %157 : tensor<3xf32>
    %215 = stablehlo.add %a14, %29 : tensor<4xf32>
    %216 = stablehlo.add %a15, %31 : tensor<4xf32>
    %217 = stablehlo.add %a16, %154 : tensor<2xf32>
    return %209, %210, %211, %212, %213, %214, %215, %216, %217 : tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2xf32>
  }
  func.func public @main(%a0: tensor<3x3x1x4xf32>, %a1: tensor<4xf32>, %a2: tensor<4xf32>, %a3: tensor<4xf32>, %a4: tensor<16x3xf32>, %a5: tensor<3xf32>, %a6: tensor<4xf32>, %a7: tensor<4xf32>, %a8: tensor<3x3x1x4xf32> {tf.aliasing_output = 0 : i32}, %a9: tensor<4xf32> {tf.aliasing_output = 1 : i32}, %a10: tensor<4xf32> {tf.aliasing_output = 2 : i32}, %a11: tensor<4xf32> {tf.aliasing_output = 3 : i32}, %a12: tensor<16x3xf32> {tf.aliasing_output = 4 : i32}, %a13: tensor<3xf32> {tf.aliasing_output = 5 : i32}, %a14: tensor<4xf32> {tf.aliasing_output = 6 : i32}, %a15: tensor<4xf32> {tf.aliasing_output = 7 : i32}, %a16: tensor<2xf32> {tf.aliasing_output = 8 : i32}, %a17: tensor<4x6x6x1xf32>, %a18: tensor<4x1xi32>, %a19: tensor<4xf32>, %a20: tensor<4xui64>) -> (tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2xf32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %count = stablehlo.constant dense<2> : tensor<i32>
    %out:10 = stablehlo.while(%i = %zero, %c0 = %a8, %c1 = %a9, %c2 = %a10, %c3 = %a11, %c4 = %a12, %c5 = %a13, %c6 = %a14, %c7 = %a15, %c8 = %a16) : tensor<i32>, tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2xf32>
    cond {
      %more = stablehlo.compare LT, %i, %count : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %s0 = stablehlo.constant dense<2> : tensor<i32>
      %o0 = stablehlo.multiply %i, %s0 : tensor<i32>
      %b0 = stablehlo.dynamic_slice %a17, %o0, %zero, %zero, %zero, sizes = [2, 6, 6, 1] : (tensor<4x6x6x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x6x6x1xf32>
      %s1 = stablehlo.constant dense<2> : tensor<i32>
      %o1 = stablehlo.multiply %i, %s1 : tensor<i32>
      %b1 = stablehlo.dynamic_slice %a18, %o1, %zero, sizes = [2, 1] : (tensor<4x1xi32>, tensor<i32>, tensor<i32>) -> tensor<2x1xi32>
      %s2 = stablehlo.constant dense<2> : tensor<i32>
      %o2 = stablehlo.multiply %i, %s2 : tensor<i32>
      %b2 = stablehlo.dynamic_slice %a19, %o2, sizes = [2] : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>
      %s3 = stablehlo.constant dense<2> : tensor<i32>
      %o3 = stablehlo.multiply %i, %s3 : tensor<i32>
      %b3 = stablehlo.dynamic_slice %a20, %o3, sizes = [2] : (tensor<4xui64>, tensor<i32>) -> tensor<2xui64>
      %r:9 = func.call @step(%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7, %c0, %c1, %c2, %c3, %c4, %c5, %c6, %c7, %c8, %b0, %b1, %b2, %b3) : (tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2xf32>, tensor<2x6x6x1xf32>, tensor<2x1xi32>, tensor<2xf32>, tensor<2xui64>) -> (tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2xf32>)
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %r#0, %r#1, %r#2, %r#3, %r#4, %r#5, %r#6, %r#7, %r#8 : tensor<i32>, tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2xf32>
    }
    return %out#1, %out#2, %out#3, %out#4, %out#5, %out#6, %out#7, %out#8, %out#9 : tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2xf32>
  }
}
