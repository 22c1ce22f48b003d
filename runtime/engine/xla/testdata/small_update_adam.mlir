module @small_update_adam {
  func.func public @main(%a0: tensor<3x3x1x4xf32> {tf.aliasing_output = 0 : i32}, %a1: tensor<4xf32> {tf.aliasing_output = 1 : i32}, %a2: tensor<4xf32> {tf.aliasing_output = 2 : i32}, %a3: tensor<4xf32> {tf.aliasing_output = 3 : i32}, %a4: tensor<16x3xf32> {tf.aliasing_output = 4 : i32}, %a5: tensor<3xf32> {tf.aliasing_output = 5 : i32}, %a6: tensor<4xf32> {tf.aliasing_output = 6 : i32}, %a7: tensor<4xf32> {tf.aliasing_output = 7 : i32}, %a8: tensor<3x3x1x4xf32> {tf.aliasing_output = 8 : i32}, %a9: tensor<4xf32> {tf.aliasing_output = 9 : i32}, %a10: tensor<4xf32> {tf.aliasing_output = 10 : i32}, %a11: tensor<4xf32> {tf.aliasing_output = 11 : i32}, %a12: tensor<16x3xf32> {tf.aliasing_output = 12 : i32}, %a13: tensor<3xf32> {tf.aliasing_output = 13 : i32}, %a14: tensor<4xf32> {tf.aliasing_output = 14 : i32}, %a15: tensor<4xf32> {tf.aliasing_output = 15 : i32}, %a16: tensor<3x3x1x4xf32> {tf.aliasing_output = 16 : i32}, %a17: tensor<4xf32> {tf.aliasing_output = 17 : i32}, %a18: tensor<4xf32> {tf.aliasing_output = 18 : i32}, %a19: tensor<4xf32> {tf.aliasing_output = 19 : i32}, %a20: tensor<16x3xf32> {tf.aliasing_output = 20 : i32}, %a21: tensor<3xf32> {tf.aliasing_output = 21 : i32}, %a22: tensor<4xf32> {tf.aliasing_output = 22 : i32}, %a23: tensor<4xf32> {tf.aliasing_output = 23 : i32}, %a24: tensor<107xf32>, %a25: tensor<11xf32>) -> (tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>) {
    %0 = stablehlo.slice %a24 [0:36] : (tensor<107xf32>) -> tensor<36xf32>
    %1 = stablehlo.reshape %0 : (tensor<36xf32>) -> tensor<3x3x1x4xf32>
    %2 = stablehlo.slice %a24 [36:40] : (tensor<107xf32>) -> tensor<4xf32>
    %3 = stablehlo.slice %a24 [40:44] : (tensor<107xf32>) -> tensor<4xf32>
    %4 = stablehlo.slice %a24 [44:48] : (tensor<107xf32>) -> tensor<4xf32>
    %5 = stablehlo.slice %a24 [48:96] : (tensor<107xf32>) -> tensor<48xf32>
    %6 = stablehlo.reshape %5 : (tensor<48xf32>) -> tensor<16x3xf32>
    %7 = stablehlo.slice %a24 [96:99] : (tensor<107xf32>) -> tensor<3xf32>
    %8 = stablehlo.slice %a24 [99:103] : (tensor<107xf32>) -> tensor<4xf32>
    %9 = stablehlo.slice %a24 [103:107] : (tensor<107xf32>) -> tensor<4xf32>
    %10 = stablehlo.slice %a25 [0:1] : (tensor<11xf32>) -> tensor<1xf32>
    %11 = stablehlo.reshape %10 : (tensor<1xf32>) -> tensor<f32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %13 = stablehlo.multiply %1, %12 : tensor<3x3x1x4xf32>
    %14 = stablehlo.slice %a25 [2:3] : (tensor<11xf32>) -> tensor<1xf32>
    %15 = stablehlo.reshape %14 : (tensor<1xf32>) -> tensor<f32>
    %16 = stablehlo.broadcast_in_dim %15, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %17 = stablehlo.multiply %16, %a0 : tensor<3x3x1x4xf32>
    %18 = stablehlo.add %13, %17 : tensor<3x3x1x4xf32>
    %19 = stablehlo.slice %a25 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %20 = stablehlo.reshape %19 : (tensor<1xf32>) -> tensor<f32>
    %21 = stablehlo.broadcast_in_dim %20, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %22 = stablehlo.slice %a25 [4:5] : (tensor<11xf32>) -> tensor<1xf32>
    %23 = stablehlo.reshape %22 : (tensor<1xf32>) -> tensor<f32>
    %24 = stablehlo.broadcast_in_dim %23, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %25 = stablehlo.multiply %24, %a8 : tensor<3x3x1x4xf32>
    %26 = stablehlo.slice %a25 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %27 = stablehlo.reshape %26 : (tensor<1xf32>) -> tensor<f32>
    %28 = stablehlo.broadcast_in_dim %27, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %29 = stablehlo.multiply %28, %18 : tensor<3x3x1x4xf32>
    %30 = stablehlo.add %25, %29 : tensor<3x3x1x4xf32>
    %31 = stablehlo.slice %a25 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %32 = stablehlo.reshape %31 : (tensor<1xf32>) -> tensor<f32>
    %33 = stablehlo.broadcast_in_dim %32, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %34 = stablehlo.multiply %33, %a16 : tensor<3x3x1x4xf32>
    %35 = stablehlo.slice %a25 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %36 = stablehlo.reshape %35 : (tensor<1xf32>) -> tensor<f32>
    %37 = stablehlo.broadcast_in_dim %36, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %38 = stablehlo.multiply %18, %18 : tensor<3x3x1x4xf32>
    %39 = stablehlo.multiply %37, %38 : tensor<3x3x1x4xf32>
    %40 = stablehlo.add %34, %39 : tensor<3x3x1x4xf32>
    %41 = stablehlo.slice %a25 [3:4] : (tensor<11xf32>) -> tensor<1xf32>
    %42 = stablehlo.reshape %41 : (tensor<1xf32>) -> tensor<f32>
    %43 = stablehlo.broadcast_in_dim %42, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %44 = stablehlo.multiply %a0, %43 : tensor<3x3x1x4xf32>
    %45 = stablehlo.sqrt %40 : tensor<3x3x1x4xf32>
    %46 = stablehlo.slice %a25 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %47 = stablehlo.reshape %46 : (tensor<1xf32>) -> tensor<f32>
    %48 = stablehlo.broadcast_in_dim %47, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %49 = stablehlo.divide %45, %48 : tensor<3x3x1x4xf32>
    %50 = stablehlo.slice %a25 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %51 = stablehlo.reshape %50 : (tensor<1xf32>) -> tensor<f32>
    %52 = stablehlo.broadcast_in_dim %51, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %53 = stablehlo.add %49, %52 : tensor<3x3x1x4xf32>
    %54 = stablehlo.divide %30, %53 : tensor<3x3x1x4xf32>
    %55 = stablehlo.multiply %21, %54 : tensor<3x3x1x4xf32>
    %56 = stablehlo.subtract %44, %55 : tensor<3x3x1x4xf32>
    %57 = stablehlo.broadcast_in_dim %11, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %58 = stablehlo.multiply %2, %57 : tensor<4xf32>
    %59 = stablehlo.slice %a25 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %60 = stablehlo.reshape %59 : (tensor<1xf32>) -> tensor<f32>
    %61 = stablehlo.broadcast_in_dim %60, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %62 = stablehlo.slice %a25 [4:5] : (tensor<11xf32>) -> tensor<1xf32>
    %63 = stablehlo.reshape %62 : (tensor<1xf32>) -> tensor<f32>
    %64 = stablehlo.broadcast_in_dim %63, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %65 = stablehlo.multiply %64, %a9 : tensor<4xf32>
    %66 = stablehlo.slice %a25 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %67 = stablehlo.reshape %66 : (tensor<1xf32>) -> tensor<f32>
    %68 = stablehlo.broadcast_in_dim %67, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %69 = stablehlo.multiply %68, %58 : tensor<4xf32>
    %70 = stablehlo.add %65, %69 : tensor<4xf32>
    %71 = stablehlo.slice %a25 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %72 = stablehlo.reshape %71 : (tensor<1xf32>) -> tensor<f32>
    %73 = stablehlo.broadcast_in_dim %72, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %74 = stablehlo.multiply %73, %a17 : tensor<4xf32>
    %75 = stablehlo.slice %a25 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %76 = stablehlo.reshape %75 : (tensor<1xf32>) -> tensor<f32>
    %77 = stablehlo.broadcast_in_dim %76, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %78 = stablehlo.multiply %58, %58 : tensor<4xf32>
    %79 = stablehlo.multiply %77, %78 : tensor<4xf32>
    %80 = stablehlo.add %74, %79 : tensor<4xf32>
    %81 = stablehlo.sqrt %80 : tensor<4xf32>
    %82 = stablehlo.slice %a25 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %83 = stablehlo.reshape %82 : (tensor<1xf32>) -> tensor<f32>
    %84 = stablehlo.broadcast_in_dim %83, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %85 = stablehlo.divide %81, %84 : tensor<4xf32>
    %86 = stablehlo.slice %a25 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %87 = stablehlo.reshape %86 : (tensor<1xf32>) -> tensor<f32>
    %88 = stablehlo.broadcast_in_dim %87, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %89 = stablehlo.add %85, %88 : tensor<4xf32>
    %90 = stablehlo.divide %70, %89 : tensor<4xf32>
    %91 = stablehlo.multiply %61, %90 : tensor<4xf32>
    %92 = stablehlo.subtract %a1, %91 : tensor<4xf32>
    %93 = stablehlo.broadcast_in_dim %11, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %94 = stablehlo.multiply %3, %93 : tensor<4xf32>
    %95 = stablehlo.slice %a25 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %96 = stablehlo.reshape %95 : (tensor<1xf32>) -> tensor<f32>
    %97 = stablehlo.broadcast_in_dim %96, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %98 = stablehlo.slice %a25 [4:5] : (tensor<11xf32>) -> tensor<1xf32>
    %99 = stablehlo.reshape %98 : (tensor<1xf32>) -> tensor<f32>
    %100 = stablehlo.broadcast_in_dim %99, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %101 = stablehlo.multiply %100, %a10 : tensor<4xf32>
    %102 = stablehlo.slice %a25 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %103 = stablehlo.reshape %102 : (tensor<1xf32>) -> tensor<f32>
    %104 = stablehlo.broadcast_in_dim %103, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %105 = stablehlo.multiply %104, %94 : tensor<4xf32>
    %106 = stablehlo.add %101, %105 : tensor<4xf32>
    %107 = stablehlo.slice %a25 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %108 = stablehlo.reshape %107 : (tensor<1xf32>) -> tensor<f32>
    %109 = stablehlo.broadcast_in_dim %108, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %110 = stablehlo.multiply %109, %a18 : tensor<4xf32>
    %111 = stablehlo.slice %a25 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %112 = stablehlo.reshape %111 : (tensor<1xf32>) -> tensor<f32>
    %113 = stablehlo.broadcast_in_dim %112, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %114 = stablehlo.multiply %94, %94 : tensor<4xf32>
    %115 = stablehlo.multiply %113, %114 : tensor<4xf32>
    %116 = stablehlo.add %110, %115 : tensor<4xf32>
    %117 = stablehlo.sqrt %116 : tensor<4xf32>
    %118 = stablehlo.slice %a25 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %119 = stablehlo.reshape %118 : (tensor<1xf32>) -> tensor<f32>
    %120 = stablehlo.broadcast_in_dim %119, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %121 = stablehlo.divide %117, %120 : tensor<4xf32>
    %122 = stablehlo.slice %a25 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %123 = stablehlo.reshape %122 : (tensor<1xf32>) -> tensor<f32>
    %124 = stablehlo.broadcast_in_dim %123, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %125 = stablehlo.add %121, %124 : tensor<4xf32>
    %126 = stablehlo.divide %106, %125 : tensor<4xf32>
    %127 = stablehlo.multiply %97, %126 : tensor<4xf32>
    %128 = stablehlo.subtract %a2, %127 : tensor<4xf32>
    %129 = stablehlo.broadcast_in_dim %11, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %130 = stablehlo.multiply %4, %129 : tensor<4xf32>
    %131 = stablehlo.slice %a25 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %132 = stablehlo.reshape %131 : (tensor<1xf32>) -> tensor<f32>
    %133 = stablehlo.broadcast_in_dim %132, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %134 = stablehlo.slice %a25 [4:5] : (tensor<11xf32>) -> tensor<1xf32>
    %135 = stablehlo.reshape %134 : (tensor<1xf32>) -> tensor<f32>
    %136 = stablehlo.broadcast_in_dim %135, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %137 = stablehlo.multiply %136, %a11 : tensor<4xf32>
    %138 = stablehlo.slice %a25 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %139 = stablehlo.reshape %138 : (tensor<1xf32>) -> tensor<f32>
    %140 = stablehlo.broadcast_in_dim %139, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %141 = stablehlo.multiply %140, %130 : tensor<4xf32>
    %142 = stablehlo.add %137, %141 : tensor<4xf32>
    %143 = stablehlo.slice %a25 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %144 = stablehlo.reshape %143 : (tensor<1xf32>) -> tensor<f32>
    %145 = stablehlo.broadcast_in_dim %144, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %146 = stablehlo.multiply %145, %a19 : tensor<4xf32>
    %147 = stablehlo.slice %a25 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %148 = stablehlo.reshape %147 : (tensor<1xf32>) -> tensor<f32>
    %149 = stablehlo.broadcast_in_dim %148, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %150 = stablehlo.multiply %130, %130 : tensor<4xf32>
    %151 = stablehlo.multiply %149, %150 : tensor<4xf32>
    %152 = stablehlo.add %146, %151 : tensor<4xf32>
    %153 = stablehlo.sqrt %152 : tensor<4xf32>
    %154 = stablehlo.slice %a25 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %155 = stablehlo.reshape %154 : (tensor<1xf32>) -> tensor<f32>
    %156 = stablehlo.broadcast_in_dim %155, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %157 = stablehlo.divide %153, %156 : tensor<4xf32>
    %158 = stablehlo.slice %a25 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %159 = stablehlo.reshape %158 : (tensor<1xf32>) -> tensor<f32>
    %160 = stablehlo.broadcast_in_dim %159, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %161 = stablehlo.add %157, %160 : tensor<4xf32>
    %162 = stablehlo.divide %142, %161 : tensor<4xf32>
    %163 = stablehlo.multiply %133, %162 : tensor<4xf32>
    %164 = stablehlo.subtract %a3, %163 : tensor<4xf32>
    %165 = stablehlo.broadcast_in_dim %11, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %166 = stablehlo.multiply %6, %165 : tensor<16x3xf32>
    %167 = stablehlo.slice %a25 [2:3] : (tensor<11xf32>) -> tensor<1xf32>
    %168 = stablehlo.reshape %167 : (tensor<1xf32>) -> tensor<f32>
    %169 = stablehlo.broadcast_in_dim %168, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %170 = stablehlo.multiply %169, %a4 : tensor<16x3xf32>
    %171 = stablehlo.add %166, %170 : tensor<16x3xf32>
    %172 = stablehlo.slice %a25 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %173 = stablehlo.reshape %172 : (tensor<1xf32>) -> tensor<f32>
    %174 = stablehlo.broadcast_in_dim %173, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %175 = stablehlo.slice %a25 [4:5] : (tensor<11xf32>) -> tensor<1xf32>
    %176 = stablehlo.reshape %175 : (tensor<1xf32>) -> tensor<f32>
    %177 = stablehlo.broadcast_in_dim %176, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %178 = stablehlo.multiply %177, %a12 : tensor<16x3xf32>
    %179 = stablehlo.slice %a25 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %180 = stablehlo.reshape %179 : (tensor<1xf32>) -> tensor<f32>
    %181 = stablehlo.broadcast_in_dim %180, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %182 = stablehlo.multiply %181, %171 : tensor<16x3xf32>
    %183 = stablehlo.add %178, %182 : tensor<16x3xf32>
    %184 = stablehlo.slice %a25 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %185 = stablehlo.reshape %184 : (tensor<1xf32>) -> tensor<f32>
    %186 = stablehlo.broadcast_in_dim %185, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %187 = stablehlo.multiply %186, %a20 : tensor<16x3xf32>
    %188 = stablehlo.slice %a25 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %189 = stablehlo.reshape %188 : (tensor<1xf32>) -> tensor<f32>
    %190 = stablehlo.broadcast_in_dim %189, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %191 = stablehlo.multiply %171, %171 : tensor<16x3xf32>
    %192 = stablehlo.multiply %190, %191 : tensor<16x3xf32>
    %193 = stablehlo.add %187, %192 : tensor<16x3xf32>
    %194 = stablehlo.slice %a25 [3:4] : (tensor<11xf32>) -> tensor<1xf32>
    %195 = stablehlo.reshape %194 : (tensor<1xf32>) -> tensor<f32>
    %196 = stablehlo.broadcast_in_dim %195, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %197 = stablehlo.multiply %a4, %196 : tensor<16x3xf32>
    %198 = stablehlo.sqrt %193 : tensor<16x3xf32>
    %199 = stablehlo.slice %a25 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %200 = stablehlo.reshape %199 : (tensor<1xf32>) -> tensor<f32>
    %201 = stablehlo.broadcast_in_dim %200, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %202 = stablehlo.divide %198, %201 : tensor<16x3xf32>
    %203 = stablehlo.slice %a25 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %204 = stablehlo.reshape %203 : (tensor<1xf32>) -> tensor<f32>
    %205 = stablehlo.broadcast_in_dim %204, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %206 = stablehlo.add %202, %205 : tensor<16x3xf32>
    %207 = stablehlo.divide %183, %206 : tensor<16x3xf32>
    %208 = stablehlo.multiply %174, %207 : tensor<16x3xf32>
    %209 = stablehlo.subtract %197, %208 : tensor<16x3xf32>
    %210 = stablehlo.broadcast_in_dim %11, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %211 = stablehlo.multiply %7, %210 : tensor<3xf32>
    %212 = stablehlo.slice %a25 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %213 = stablehlo.reshape %212 : (tensor<1xf32>) -> tensor<f32>
    %214 = stablehlo.broadcast_in_dim %213, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %215 = stablehlo.slice %a25 [4:5] : (tensor<11xf32>) -> tensor<1xf32>
    %216 = stablehlo.reshape %215 : (tensor<1xf32>) -> tensor<f32>
    %217 = stablehlo.broadcast_in_dim %216, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %218 = stablehlo.multiply %217, %a13 : tensor<3xf32>
    %219 = stablehlo.slice %a25 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %220 = stablehlo.reshape %219 : (tensor<1xf32>) -> tensor<f32>
    %221 = stablehlo.broadcast_in_dim %220, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %222 = stablehlo.multiply %221, %211 : tensor<3xf32>
    %223 = stablehlo.add %218, %222 : tensor<3xf32>
    %224 = stablehlo.slice %a25 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %225 = stablehlo.reshape %224 : (tensor<1xf32>) -> tensor<f32>
    %226 = stablehlo.broadcast_in_dim %225, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %227 = stablehlo.multiply %226, %a21 : tensor<3xf32>
    %228 = stablehlo.slice %a25 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %229 = stablehlo.reshape %228 : (tensor<1xf32>) -> tensor<f32>
    %230 = stablehlo.broadcast_in_dim %229, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %231 = stablehlo.multiply %211, %211 : tensor<3xf32>
    %232 = stablehlo.multiply %230, %231 : tensor<3xf32>
    %233 = stablehlo.add %227, %232 : tensor<3xf32>
    %234 = stablehlo.sqrt %233 : tensor<3xf32>
    %235 = stablehlo.slice %a25 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %236 = stablehlo.reshape %235 : (tensor<1xf32>) -> tensor<f32>
    %237 = stablehlo.broadcast_in_dim %236, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %238 = stablehlo.divide %234, %237 : tensor<3xf32>
    %239 = stablehlo.slice %a25 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %240 = stablehlo.reshape %239 : (tensor<1xf32>) -> tensor<f32>
    %241 = stablehlo.broadcast_in_dim %240, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %242 = stablehlo.add %238, %241 : tensor<3xf32>
    %243 = stablehlo.divide %223, %242 : tensor<3xf32>
    %244 = stablehlo.multiply %214, %243 : tensor<3xf32>
    %245 = stablehlo.subtract %a5, %244 : tensor<3xf32>
    %246 = stablehlo.slice %a25 [0:1] : (tensor<11xf32>) -> tensor<1xf32>
    %247 = stablehlo.reshape %246 : (tensor<1xf32>) -> tensor<f32>
    %248 = stablehlo.broadcast_in_dim %247, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %249 = stablehlo.multiply %8, %248 : tensor<4xf32>
    %250 = stablehlo.constant dense<8.999999762e-01> : tensor<f32>
    %251 = stablehlo.broadcast_in_dim %250, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %252 = stablehlo.multiply %a6, %251 : tensor<4xf32>
    %253 = stablehlo.constant dense<1.000000238e-01> : tensor<f32>
    %254 = stablehlo.broadcast_in_dim %253, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %255 = stablehlo.multiply %249, %254 : tensor<4xf32>
    %256 = stablehlo.add %252, %255 : tensor<4xf32>
    %257 = stablehlo.slice %a25 [0:1] : (tensor<11xf32>) -> tensor<1xf32>
    %258 = stablehlo.reshape %257 : (tensor<1xf32>) -> tensor<f32>
    %259 = stablehlo.broadcast_in_dim %258, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %260 = stablehlo.multiply %9, %259 : tensor<4xf32>
    %261 = stablehlo.broadcast_in_dim %250, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %262 = stablehlo.multiply %a7, %261 : tensor<4xf32>
    %263 = stablehlo.broadcast_in_dim %253, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %264 = stablehlo.multiply %260, %263 : tensor<4xf32>
    %265 = stablehlo.add %262, %264 : tensor<4xf32>
    return %56, %92, %128, %164, %209, %245, %256, %265, %30, %70, %106, %142, %183, %223, %a14, %a15, %40, %80, %116, %152, %193, %233, %a22, %a23 : tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>
  }
}
