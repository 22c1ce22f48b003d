module @small_update_adam_resident {
  func.func public @main(%a0: tensor<3x3x1x4xf32> {tf.aliasing_output = 0 : i32}, %a1: tensor<4xf32> {tf.aliasing_output = 1 : i32}, %a2: tensor<4xf32> {tf.aliasing_output = 2 : i32}, %a3: tensor<4xf32> {tf.aliasing_output = 3 : i32}, %a4: tensor<16x3xf32> {tf.aliasing_output = 4 : i32}, %a5: tensor<3xf32> {tf.aliasing_output = 5 : i32}, %a6: tensor<4xf32> {tf.aliasing_output = 6 : i32}, %a7: tensor<4xf32> {tf.aliasing_output = 7 : i32}, %a8: tensor<3x3x1x4xf32> {tf.aliasing_output = 8 : i32}, %a9: tensor<4xf32> {tf.aliasing_output = 9 : i32}, %a10: tensor<4xf32> {tf.aliasing_output = 10 : i32}, %a11: tensor<4xf32> {tf.aliasing_output = 11 : i32}, %a12: tensor<16x3xf32> {tf.aliasing_output = 12 : i32}, %a13: tensor<3xf32> {tf.aliasing_output = 13 : i32}, %a14: tensor<4xf32> {tf.aliasing_output = 14 : i32}, %a15: tensor<4xf32> {tf.aliasing_output = 15 : i32}, %a16: tensor<3x3x1x4xf32> {tf.aliasing_output = 16 : i32}, %a17: tensor<4xf32> {tf.aliasing_output = 17 : i32}, %a18: tensor<4xf32> {tf.aliasing_output = 18 : i32}, %a19: tensor<4xf32> {tf.aliasing_output = 19 : i32}, %a20: tensor<16x3xf32> {tf.aliasing_output = 20 : i32}, %a21: tensor<3xf32> {tf.aliasing_output = 21 : i32}, %a22: tensor<4xf32> {tf.aliasing_output = 22 : i32}, %a23: tensor<4xf32> {tf.aliasing_output = 23 : i32}, %a24: tensor<3x3x1x4xf32> {tf.aliasing_output = 24 : i32}, %a25: tensor<4xf32> {tf.aliasing_output = 25 : i32}, %a26: tensor<4xf32> {tf.aliasing_output = 26 : i32}, %a27: tensor<4xf32> {tf.aliasing_output = 27 : i32}, %a28: tensor<16x3xf32> {tf.aliasing_output = 28 : i32}, %a29: tensor<3xf32> {tf.aliasing_output = 29 : i32}, %a30: tensor<4xf32> {tf.aliasing_output = 30 : i32}, %a31: tensor<4xf32> {tf.aliasing_output = 31 : i32}, %a32: tensor<11xf32>, %a33: tensor<f32>) -> (tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>) {
    %0 = stablehlo.slice %a32 [0:1] : (tensor<11xf32>) -> tensor<1xf32>
    %1 = stablehlo.reshape %0 : (tensor<1xf32>) -> tensor<f32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %3 = stablehlo.multiply %a24, %2 : tensor<3x3x1x4xf32>
    %4 = stablehlo.slice %a32 [2:3] : (tensor<11xf32>) -> tensor<1xf32>
    %5 = stablehlo.reshape %4 : (tensor<1xf32>) -> tensor<f32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %7 = stablehlo.multiply %6, %a0 : tensor<3x3x1x4xf32>
    %8 = stablehlo.add %3, %7 : tensor<3x3x1x4xf32>
    %9 = stablehlo.slice %a32 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %10 = stablehlo.reshape %9 : (tensor<1xf32>) -> tensor<f32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %12 = stablehlo.slice %a32 [4:5] : (tensor<11xf32>) -> tensor<1xf32>
    %13 = stablehlo.reshape %12 : (tensor<1xf32>) -> tensor<f32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %15 = stablehlo.multiply %14, %a8 : tensor<3x3x1x4xf32>
    %16 = stablehlo.slice %a32 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %17 = stablehlo.reshape %16 : (tensor<1xf32>) -> tensor<f32>
    %18 = stablehlo.broadcast_in_dim %17, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %19 = stablehlo.multiply %18, %8 : tensor<3x3x1x4xf32>
    %20 = stablehlo.add %15, %19 : tensor<3x3x1x4xf32>
    %21 = stablehlo.slice %a32 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %22 = stablehlo.reshape %21 : (tensor<1xf32>) -> tensor<f32>
    %23 = stablehlo.broadcast_in_dim %22, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %24 = stablehlo.multiply %23, %a16 : tensor<3x3x1x4xf32>
    %25 = stablehlo.slice %a32 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %26 = stablehlo.reshape %25 : (tensor<1xf32>) -> tensor<f32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %28 = stablehlo.multiply %8, %8 : tensor<3x3x1x4xf32>
    %29 = stablehlo.multiply %27, %28 : tensor<3x3x1x4xf32>
    %30 = stablehlo.add %24, %29 : tensor<3x3x1x4xf32>
    %31 = stablehlo.slice %a32 [3:4] : (tensor<11xf32>) -> tensor<1xf32>
    %32 = stablehlo.reshape %31 : (tensor<1xf32>) -> tensor<f32>
    %33 = stablehlo.broadcast_in_dim %32, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %34 = stablehlo.multiply %a0, %33 : tensor<3x3x1x4xf32>
    %35 = stablehlo.sqrt %30 : tensor<3x3x1x4xf32>
    %36 = stablehlo.slice %a32 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %37 = stablehlo.reshape %36 : (tensor<1xf32>) -> tensor<f32>
    %38 = stablehlo.broadcast_in_dim %37, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %39 = stablehlo.divide %35, %38 : tensor<3x3x1x4xf32>
    %40 = stablehlo.slice %a32 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %41 = stablehlo.reshape %40 : (tensor<1xf32>) -> tensor<f32>
    %42 = stablehlo.broadcast_in_dim %41, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %43 = stablehlo.add %39, %42 : tensor<3x3x1x4xf32>
    %44 = stablehlo.divide %20, %43 : tensor<3x3x1x4xf32>
    %45 = stablehlo.multiply %11, %44 : tensor<3x3x1x4xf32>
    %46 = stablehlo.subtract %34, %45 : tensor<3x3x1x4xf32>
    %47 = stablehlo.broadcast_in_dim %a33, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %48 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
    %49 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %50 = stablehlo.compare GT, %47, %49 : (tensor<3x3x1x4xf32>, tensor<3x3x1x4xf32>) -> tensor<3x3x1x4xi1>
    %51 = stablehlo.select %50, %46, %a0 : tensor<3x3x1x4xi1>, tensor<3x3x1x4xf32>
    %52 = stablehlo.broadcast_in_dim %a33, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %53 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %54 = stablehlo.compare GT, %52, %53 : (tensor<3x3x1x4xf32>, tensor<3x3x1x4xf32>) -> tensor<3x3x1x4xi1>
    %55 = stablehlo.select %54, %20, %a8 : tensor<3x3x1x4xi1>, tensor<3x3x1x4xf32>
    %56 = stablehlo.broadcast_in_dim %a33, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %57 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %58 = stablehlo.compare GT, %56, %57 : (tensor<3x3x1x4xf32>, tensor<3x3x1x4xf32>) -> tensor<3x3x1x4xi1>
    %59 = stablehlo.select %58, %30, %a16 : tensor<3x3x1x4xi1>, tensor<3x3x1x4xf32>
    %60 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %61 = stablehlo.multiply %a25, %60 : tensor<4xf32>
    %62 = stablehlo.slice %a32 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %63 = stablehlo.reshape %62 : (tensor<1xf32>) -> tensor<f32>
    %64 = stablehlo.broadcast_in_dim %63, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %65 = stablehlo.slice %a32 [4:5] : (tensor<11xf32>) -> tensor<1xf32>
    %66 = stablehlo.reshape %65 : (tensor<1xf32>) -> tensor<f32>
    %67 = stablehlo.broadcast_in_dim %66, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %68 = stablehlo.multiply %67, %a9 : tensor<4xf32>
    %69 = stablehlo.slice %a32 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %70 = stablehlo.reshape %69 : (tensor<1xf32>) -> tensor<f32>
    %71 = stablehlo.broadcast_in_dim %70, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %72 = stablehlo.multiply %71, %61 : tensor<4xf32>
    %73 = stablehlo.add %68, %72 : tensor<4xf32>
    %74 = stablehlo.slice %a32 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %75 = stablehlo.reshape %74 : (tensor<1xf32>) -> tensor<f32>
    %76 = stablehlo.broadcast_in_dim %75, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %77 = stablehlo.multiply %76, %a17 : tensor<4xf32>
    %78 = stablehlo.slice %a32 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %79 = stablehlo.reshape %78 : (tensor<1xf32>) -> tensor<f32>
    %80 = stablehlo.broadcast_in_dim %79, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %81 = stablehlo.multiply %61, %61 : tensor<4xf32>
    %82 = stablehlo.multiply %80, %81 : tensor<4xf32>
    %83 = stablehlo.add %77, %82 : tensor<4xf32>
    %84 = stablehlo.sqrt %83 : tensor<4xf32>
    %85 = stablehlo.slice %a32 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %86 = stablehlo.reshape %85 : (tensor<1xf32>) -> tensor<f32>
    %87 = stablehlo.broadcast_in_dim %86, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %88 = stablehlo.divide %84, %87 : tensor<4xf32>
    %89 = stablehlo.slice %a32 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %90 = stablehlo.reshape %89 : (tensor<1xf32>) -> tensor<f32>
    %91 = stablehlo.broadcast_in_dim %90, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %92 = stablehlo.add %88, %91 : tensor<4xf32>
    %93 = stablehlo.divide %73, %92 : tensor<4xf32>
    %94 = stablehlo.multiply %64, %93 : tensor<4xf32>
    %95 = stablehlo.subtract %a1, %94 : tensor<4xf32>
    %96 = stablehlo.broadcast_in_dim %a33, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %97 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %98 = stablehlo.compare GT, %96, %97 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %99 = stablehlo.select %98, %95, %a1 : tensor<4xi1>, tensor<4xf32>
    %100 = stablehlo.broadcast_in_dim %a33, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %101 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %102 = stablehlo.compare GT, %100, %101 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %103 = stablehlo.select %102, %73, %a9 : tensor<4xi1>, tensor<4xf32>
    %104 = stablehlo.broadcast_in_dim %a33, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %105 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %106 = stablehlo.compare GT, %104, %105 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %107 = stablehlo.select %106, %83, %a17 : tensor<4xi1>, tensor<4xf32>
    %108 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %109 = stablehlo.multiply %a26, %108 : tensor<4xf32>
    %110 = stablehlo.slice %a32 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %111 = stablehlo.reshape %110 : (tensor<1xf32>) -> tensor<f32>
    %112 = stablehlo.broadcast_in_dim %111, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %113 = stablehlo.slice %a32 [4:5] : (tensor<11xf32>) -> tensor<1xf32>
    %114 = stablehlo.reshape %113 : (tensor<1xf32>) -> tensor<f32>
    %115 = stablehlo.broadcast_in_dim %114, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %116 = stablehlo.multiply %115, %a10 : tensor<4xf32>
    %117 = stablehlo.slice %a32 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %118 = stablehlo.reshape %117 : (tensor<1xf32>) -> tensor<f32>
    %119 = stablehlo.broadcast_in_dim %118, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %120 = stablehlo.multiply %119, %109 : tensor<4xf32>
    %121 = stablehlo.add %116, %120 : tensor<4xf32>
    %122 = stablehlo.slice %a32 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %123 = stablehlo.reshape %122 : (tensor<1xf32>) -> tensor<f32>
    %124 = stablehlo.broadcast_in_dim %123, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %125 = stablehlo.multiply %124, %a18 : tensor<4xf32>
    %126 = stablehlo.slice %a32 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %127 = stablehlo.reshape %126 : (tensor<1xf32>) -> tensor<f32>
    %128 = stablehlo.broadcast_in_dim %127, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %129 = stablehlo.multiply %109, %109 : tensor<4xf32>
    %130 = stablehlo.multiply %128, %129 : tensor<4xf32>
    %131 = stablehlo.add %125, %130 : tensor<4xf32>
    %132 = stablehlo.sqrt %131 : tensor<4xf32>
    %133 = stablehlo.slice %a32 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %134 = stablehlo.reshape %133 : (tensor<1xf32>) -> tensor<f32>
    %135 = stablehlo.broadcast_in_dim %134, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %136 = stablehlo.divide %132, %135 : tensor<4xf32>
    %137 = stablehlo.slice %a32 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %138 = stablehlo.reshape %137 : (tensor<1xf32>) -> tensor<f32>
    %139 = stablehlo.broadcast_in_dim %138, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %140 = stablehlo.add %136, %139 : tensor<4xf32>
    %141 = stablehlo.divide %121, %140 : tensor<4xf32>
    %142 = stablehlo.multiply %112, %141 : tensor<4xf32>
    %143 = stablehlo.subtract %a2, %142 : tensor<4xf32>
    %144 = stablehlo.broadcast_in_dim %a33, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %145 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %146 = stablehlo.compare GT, %144, %145 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %147 = stablehlo.select %146, %143, %a2 : tensor<4xi1>, tensor<4xf32>
    %148 = stablehlo.broadcast_in_dim %a33, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %149 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %150 = stablehlo.compare GT, %148, %149 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %151 = stablehlo.select %150, %121, %a10 : tensor<4xi1>, tensor<4xf32>
    %152 = stablehlo.broadcast_in_dim %a33, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %153 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %154 = stablehlo.compare GT, %152, %153 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %155 = stablehlo.select %154, %131, %a18 : tensor<4xi1>, tensor<4xf32>
    %156 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %157 = stablehlo.multiply %a27, %156 : tensor<4xf32>
    %158 = stablehlo.slice %a32 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %159 = stablehlo.reshape %158 : (tensor<1xf32>) -> tensor<f32>
    %160 = stablehlo.broadcast_in_dim %159, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %161 = stablehlo.slice %a32 [4:5] : (tensor<11xf32>) -> tensor<1xf32>
    %162 = stablehlo.reshape %161 : (tensor<1xf32>) -> tensor<f32>
    %163 = stablehlo.broadcast_in_dim %162, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %164 = stablehlo.multiply %163, %a11 : tensor<4xf32>
    %165 = stablehlo.slice %a32 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %166 = stablehlo.reshape %165 : (tensor<1xf32>) -> tensor<f32>
    %167 = stablehlo.broadcast_in_dim %166, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %168 = stablehlo.multiply %167, %157 : tensor<4xf32>
    %169 = stablehlo.add %164, %168 : tensor<4xf32>
    %170 = stablehlo.slice %a32 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %171 = stablehlo.reshape %170 : (tensor<1xf32>) -> tensor<f32>
    %172 = stablehlo.broadcast_in_dim %171, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %173 = stablehlo.multiply %172, %a19 : tensor<4xf32>
    %174 = stablehlo.slice %a32 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %175 = stablehlo.reshape %174 : (tensor<1xf32>) -> tensor<f32>
    %176 = stablehlo.broadcast_in_dim %175, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %177 = stablehlo.multiply %157, %157 : tensor<4xf32>
    %178 = stablehlo.multiply %176, %177 : tensor<4xf32>
    %179 = stablehlo.add %173, %178 : tensor<4xf32>
    %180 = stablehlo.sqrt %179 : tensor<4xf32>
    %181 = stablehlo.slice %a32 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %182 = stablehlo.reshape %181 : (tensor<1xf32>) -> tensor<f32>
    %183 = stablehlo.broadcast_in_dim %182, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %184 = stablehlo.divide %180, %183 : tensor<4xf32>
    %185 = stablehlo.slice %a32 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %186 = stablehlo.reshape %185 : (tensor<1xf32>) -> tensor<f32>
    %187 = stablehlo.broadcast_in_dim %186, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %188 = stablehlo.add %184, %187 : tensor<4xf32>
    %189 = stablehlo.divide %169, %188 : tensor<4xf32>
    %190 = stablehlo.multiply %160, %189 : tensor<4xf32>
    %191 = stablehlo.subtract %a3, %190 : tensor<4xf32>
    %192 = stablehlo.broadcast_in_dim %a33, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %193 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %194 = stablehlo.compare GT, %192, %193 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %195 = stablehlo.select %194, %191, %a3 : tensor<4xi1>, tensor<4xf32>
    %196 = stablehlo.broadcast_in_dim %a33, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %197 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %198 = stablehlo.compare GT, %196, %197 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %199 = stablehlo.select %198, %169, %a11 : tensor<4xi1>, tensor<4xf32>
    %200 = stablehlo.broadcast_in_dim %a33, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %201 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %202 = stablehlo.compare GT, %200, %201 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %203 = stablehlo.select %202, %179, %a19 : tensor<4xi1>, tensor<4xf32>
    %204 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %205 = stablehlo.multiply %a28, %204 : tensor<16x3xf32>
    %206 = stablehlo.slice %a32 [2:3] : (tensor<11xf32>) -> tensor<1xf32>
    %207 = stablehlo.reshape %206 : (tensor<1xf32>) -> tensor<f32>
    %208 = stablehlo.broadcast_in_dim %207, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %209 = stablehlo.multiply %208, %a4 : tensor<16x3xf32>
    %210 = stablehlo.add %205, %209 : tensor<16x3xf32>
    %211 = stablehlo.slice %a32 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %212 = stablehlo.reshape %211 : (tensor<1xf32>) -> tensor<f32>
    %213 = stablehlo.broadcast_in_dim %212, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %214 = stablehlo.slice %a32 [4:5] : (tensor<11xf32>) -> tensor<1xf32>
    %215 = stablehlo.reshape %214 : (tensor<1xf32>) -> tensor<f32>
    %216 = stablehlo.broadcast_in_dim %215, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %217 = stablehlo.multiply %216, %a12 : tensor<16x3xf32>
    %218 = stablehlo.slice %a32 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %219 = stablehlo.reshape %218 : (tensor<1xf32>) -> tensor<f32>
    %220 = stablehlo.broadcast_in_dim %219, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %221 = stablehlo.multiply %220, %210 : tensor<16x3xf32>
    %222 = stablehlo.add %217, %221 : tensor<16x3xf32>
    %223 = stablehlo.slice %a32 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %224 = stablehlo.reshape %223 : (tensor<1xf32>) -> tensor<f32>
    %225 = stablehlo.broadcast_in_dim %224, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %226 = stablehlo.multiply %225, %a20 : tensor<16x3xf32>
    %227 = stablehlo.slice %a32 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %228 = stablehlo.reshape %227 : (tensor<1xf32>) -> tensor<f32>
    %229 = stablehlo.broadcast_in_dim %228, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %230 = stablehlo.multiply %210, %210 : tensor<16x3xf32>
    %231 = stablehlo.multiply %229, %230 : tensor<16x3xf32>
    %232 = stablehlo.add %226, %231 : tensor<16x3xf32>
    %233 = stablehlo.slice %a32 [3:4] : (tensor<11xf32>) -> tensor<1xf32>
    %234 = stablehlo.reshape %233 : (tensor<1xf32>) -> tensor<f32>
    %235 = stablehlo.broadcast_in_dim %234, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %236 = stablehlo.multiply %a4, %235 : tensor<16x3xf32>
    %237 = stablehlo.sqrt %232 : tensor<16x3xf32>
    %238 = stablehlo.slice %a32 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %239 = stablehlo.reshape %238 : (tensor<1xf32>) -> tensor<f32>
    %240 = stablehlo.broadcast_in_dim %239, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %241 = stablehlo.divide %237, %240 : tensor<16x3xf32>
    %242 = stablehlo.slice %a32 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %243 = stablehlo.reshape %242 : (tensor<1xf32>) -> tensor<f32>
    %244 = stablehlo.broadcast_in_dim %243, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %245 = stablehlo.add %241, %244 : tensor<16x3xf32>
    %246 = stablehlo.divide %222, %245 : tensor<16x3xf32>
    %247 = stablehlo.multiply %213, %246 : tensor<16x3xf32>
    %248 = stablehlo.subtract %236, %247 : tensor<16x3xf32>
    %249 = stablehlo.broadcast_in_dim %a33, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %250 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %251 = stablehlo.compare GT, %249, %250 : (tensor<16x3xf32>, tensor<16x3xf32>) -> tensor<16x3xi1>
    %252 = stablehlo.select %251, %248, %a4 : tensor<16x3xi1>, tensor<16x3xf32>
    %253 = stablehlo.broadcast_in_dim %a33, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %254 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %255 = stablehlo.compare GT, %253, %254 : (tensor<16x3xf32>, tensor<16x3xf32>) -> tensor<16x3xi1>
    %256 = stablehlo.select %255, %222, %a12 : tensor<16x3xi1>, tensor<16x3xf32>
    %257 = stablehlo.broadcast_in_dim %a33, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %258 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %259 = stablehlo.compare GT, %257, %258 : (tensor<16x3xf32>, tensor<16x3xf32>) -> tensor<16x3xi1>
    %260 = stablehlo.select %259, %232, %a20 : tensor<16x3xi1>, tensor<16x3xf32>
    %261 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %262 = stablehlo.multiply %a29, %261 : tensor<3xf32>
    %263 = stablehlo.slice %a32 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %264 = stablehlo.reshape %263 : (tensor<1xf32>) -> tensor<f32>
    %265 = stablehlo.broadcast_in_dim %264, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %266 = stablehlo.slice %a32 [4:5] : (tensor<11xf32>) -> tensor<1xf32>
    %267 = stablehlo.reshape %266 : (tensor<1xf32>) -> tensor<f32>
    %268 = stablehlo.broadcast_in_dim %267, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %269 = stablehlo.multiply %268, %a13 : tensor<3xf32>
    %270 = stablehlo.slice %a32 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %271 = stablehlo.reshape %270 : (tensor<1xf32>) -> tensor<f32>
    %272 = stablehlo.broadcast_in_dim %271, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %273 = stablehlo.multiply %272, %262 : tensor<3xf32>
    %274 = stablehlo.add %269, %273 : tensor<3xf32>
    %275 = stablehlo.slice %a32 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %276 = stablehlo.reshape %275 : (tensor<1xf32>) -> tensor<f32>
    %277 = stablehlo.broadcast_in_dim %276, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %278 = stablehlo.multiply %277, %a21 : tensor<3xf32>
    %279 = stablehlo.slice %a32 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %280 = stablehlo.reshape %279 : (tensor<1xf32>) -> tensor<f32>
    %281 = stablehlo.broadcast_in_dim %280, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %282 = stablehlo.multiply %262, %262 : tensor<3xf32>
    %283 = stablehlo.multiply %281, %282 : tensor<3xf32>
    %284 = stablehlo.add %278, %283 : tensor<3xf32>
    %285 = stablehlo.sqrt %284 : tensor<3xf32>
    %286 = stablehlo.slice %a32 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %287 = stablehlo.reshape %286 : (tensor<1xf32>) -> tensor<f32>
    %288 = stablehlo.broadcast_in_dim %287, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %289 = stablehlo.divide %285, %288 : tensor<3xf32>
    %290 = stablehlo.slice %a32 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %291 = stablehlo.reshape %290 : (tensor<1xf32>) -> tensor<f32>
    %292 = stablehlo.broadcast_in_dim %291, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %293 = stablehlo.add %289, %292 : tensor<3xf32>
    %294 = stablehlo.divide %274, %293 : tensor<3xf32>
    %295 = stablehlo.multiply %265, %294 : tensor<3xf32>
    %296 = stablehlo.subtract %a5, %295 : tensor<3xf32>
    %297 = stablehlo.broadcast_in_dim %a33, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %298 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %299 = stablehlo.compare GT, %297, %298 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
    %300 = stablehlo.select %299, %296, %a5 : tensor<3xi1>, tensor<3xf32>
    %301 = stablehlo.broadcast_in_dim %a33, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %302 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %303 = stablehlo.compare GT, %301, %302 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
    %304 = stablehlo.select %303, %274, %a13 : tensor<3xi1>, tensor<3xf32>
    %305 = stablehlo.broadcast_in_dim %a33, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %306 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %307 = stablehlo.compare GT, %305, %306 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
    %308 = stablehlo.select %307, %284, %a21 : tensor<3xi1>, tensor<3xf32>
    %309 = stablehlo.slice %a32 [0:1] : (tensor<11xf32>) -> tensor<1xf32>
    %310 = stablehlo.reshape %309 : (tensor<1xf32>) -> tensor<f32>
    %311 = stablehlo.broadcast_in_dim %310, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %312 = stablehlo.multiply %a30, %311 : tensor<4xf32>
    %313 = stablehlo.constant dense<8.999999762e-01> : tensor<f32>
    %314 = stablehlo.broadcast_in_dim %313, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %315 = stablehlo.multiply %a6, %314 : tensor<4xf32>
    %316 = stablehlo.constant dense<1.000000238e-01> : tensor<f32>
    %317 = stablehlo.broadcast_in_dim %316, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %318 = stablehlo.multiply %312, %317 : tensor<4xf32>
    %319 = stablehlo.add %315, %318 : tensor<4xf32>
    %320 = stablehlo.broadcast_in_dim %a33, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %321 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %322 = stablehlo.compare GT, %320, %321 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %323 = stablehlo.select %322, %319, %a6 : tensor<4xi1>, tensor<4xf32>
    %324 = stablehlo.broadcast_in_dim %a33, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %325 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %326 = stablehlo.compare GT, %324, %325 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %327 = stablehlo.select %326, %a14, %a14 : tensor<4xi1>, tensor<4xf32>
    %328 = stablehlo.broadcast_in_dim %a33, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %329 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %330 = stablehlo.compare GT, %328, %329 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %331 = stablehlo.select %330, %a22, %a22 : tensor<4xi1>, tensor<4xf32>
    %332 = stablehlo.slice %a32 [0:1] : (tensor<11xf32>) -> tensor<1xf32>
    %333 = stablehlo.reshape %332 : (tensor<1xf32>) -> tensor<f32>
    %334 = stablehlo.broadcast_in_dim %333, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %335 = stablehlo.multiply %a31, %334 : tensor<4xf32>
    %336 = stablehlo.broadcast_in_dim %313, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %337 = stablehlo.multiply %a7, %336 : tensor<4xf32>
    %338 = stablehlo.broadcast_in_dim %316, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %339 = stablehlo.multiply %335, %338 : tensor<4xf32>
    %340 = stablehlo.add %337, %339 : tensor<4xf32>
    %341 = stablehlo.broadcast_in_dim %a33, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %342 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %343 = stablehlo.compare GT, %341, %342 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %344 = stablehlo.select %343, %340, %a7 : tensor<4xi1>, tensor<4xf32>
    %345 = stablehlo.broadcast_in_dim %a33, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %346 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %347 = stablehlo.compare GT, %345, %346 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %348 = stablehlo.select %347, %a15, %a15 : tensor<4xi1>, tensor<4xf32>
    %349 = stablehlo.broadcast_in_dim %a33, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %350 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %351 = stablehlo.compare GT, %349, %350 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %352 = stablehlo.select %351, %a23, %a23 : tensor<4xi1>, tensor<4xf32>
    %353 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %354 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %355 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %356 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %357 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %358 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %359 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %360 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<4xf32>
    return %51, %99, %147, %195, %252, %300, %323, %344, %55, %103, %151, %199, %256, %304, %327, %348, %59, %107, %155, %203, %260, %308, %331, %352, %353, %354, %355, %356, %357, %358, %359, %360 : tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>
  }
}
