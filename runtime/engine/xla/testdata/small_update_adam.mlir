module @small_update_adam {
  func.func public @main(%a0: tensor<3x3x1x4xf32> {tf.aliasing_output = 0 : i32}, %a1: tensor<4xf32> {tf.aliasing_output = 1 : i32}, %a2: tensor<4xf32> {tf.aliasing_output = 2 : i32}, %a3: tensor<4xf32> {tf.aliasing_output = 3 : i32}, %a4: tensor<16x3xf32> {tf.aliasing_output = 4 : i32}, %a5: tensor<3xf32> {tf.aliasing_output = 5 : i32}, %a6: tensor<4xf32> {tf.aliasing_output = 6 : i32}, %a7: tensor<4xf32> {tf.aliasing_output = 7 : i32}, %a8: tensor<3x3x1x4xf32> {tf.aliasing_output = 8 : i32}, %a9: tensor<4xf32> {tf.aliasing_output = 9 : i32}, %a10: tensor<4xf32> {tf.aliasing_output = 10 : i32}, %a11: tensor<4xf32> {tf.aliasing_output = 11 : i32}, %a12: tensor<16x3xf32> {tf.aliasing_output = 12 : i32}, %a13: tensor<3xf32> {tf.aliasing_output = 13 : i32}, %a14: tensor<4xf32> {tf.aliasing_output = 14 : i32}, %a15: tensor<4xf32> {tf.aliasing_output = 15 : i32}, %a16: tensor<3x3x1x4xf32> {tf.aliasing_output = 16 : i32}, %a17: tensor<4xf32> {tf.aliasing_output = 17 : i32}, %a18: tensor<4xf32> {tf.aliasing_output = 18 : i32}, %a19: tensor<4xf32> {tf.aliasing_output = 19 : i32}, %a20: tensor<16x3xf32> {tf.aliasing_output = 20 : i32}, %a21: tensor<3xf32> {tf.aliasing_output = 21 : i32}, %a22: tensor<4xf32> {tf.aliasing_output = 22 : i32}, %a23: tensor<4xf32> {tf.aliasing_output = 23 : i32}, %a24: tensor<107xf32>, %a25: tensor<11xf32>) -> (tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>) {
    %0 = stablehlo.slice %a24 [0:36] : (tensor<107xf32>) -> tensor<36xf32>
    %1 = stablehlo.reshape %0 : (tensor<36xf32>) -> tensor<3x3x1x4xf32>
    %2 = stablehlo.slice %a25 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %3 = stablehlo.reshape %2 : (tensor<1xf32>) -> tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %5 = stablehlo.multiply %1, %4 : tensor<3x3x1x4xf32>
    %6 = stablehlo.slice %a25 [3:4] : (tensor<11xf32>) -> tensor<1xf32>
    %7 = stablehlo.reshape %6 : (tensor<1xf32>) -> tensor<f32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %9 = stablehlo.multiply %8, %a0 : tensor<3x3x1x4xf32>
    %10 = stablehlo.add %5, %9 : tensor<3x3x1x4xf32>
    %11 = stablehlo.slice %a25 [2:3] : (tensor<11xf32>) -> tensor<1xf32>
    %12 = stablehlo.reshape %11 : (tensor<1xf32>) -> tensor<f32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %14 = stablehlo.slice %a25 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %15 = stablehlo.reshape %14 : (tensor<1xf32>) -> tensor<f32>
    %16 = stablehlo.broadcast_in_dim %15, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %17 = stablehlo.multiply %16, %a8 : tensor<3x3x1x4xf32>
    %18 = stablehlo.slice %a25 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %19 = stablehlo.reshape %18 : (tensor<1xf32>) -> tensor<f32>
    %20 = stablehlo.broadcast_in_dim %19, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %21 = stablehlo.multiply %20, %10 : tensor<3x3x1x4xf32>
    %22 = stablehlo.add %17, %21 : tensor<3x3x1x4xf32>
    %23 = stablehlo.slice %a25 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %24 = stablehlo.reshape %23 : (tensor<1xf32>) -> tensor<f32>
    %25 = stablehlo.broadcast_in_dim %24, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %26 = stablehlo.multiply %25, %a16 : tensor<3x3x1x4xf32>
    %27 = stablehlo.slice %a25 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %28 = stablehlo.reshape %27 : (tensor<1xf32>) -> tensor<f32>
    %29 = stablehlo.broadcast_in_dim %28, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %30 = stablehlo.multiply %10, %10 : tensor<3x3x1x4xf32>
    %31 = stablehlo.multiply %29, %30 : tensor<3x3x1x4xf32>
    %32 = stablehlo.add %26, %31 : tensor<3x3x1x4xf32>
    %33 = stablehlo.slice %a25 [4:5] : (tensor<11xf32>) -> tensor<1xf32>
    %34 = stablehlo.reshape %33 : (tensor<1xf32>) -> tensor<f32>
    %35 = stablehlo.broadcast_in_dim %34, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %36 = stablehlo.multiply %a0, %35 : tensor<3x3x1x4xf32>
    %37 = stablehlo.sqrt %32 : tensor<3x3x1x4xf32>
    %38 = stablehlo.slice %a25 [10:11] : (tensor<11xf32>) -> tensor<1xf32>
    %39 = stablehlo.reshape %38 : (tensor<1xf32>) -> tensor<f32>
    %40 = stablehlo.broadcast_in_dim %39, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %41 = stablehlo.divide %37, %40 : tensor<3x3x1x4xf32>
    %42 = stablehlo.slice %a25 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %43 = stablehlo.reshape %42 : (tensor<1xf32>) -> tensor<f32>
    %44 = stablehlo.broadcast_in_dim %43, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %45 = stablehlo.add %41, %44 : tensor<3x3x1x4xf32>
    %46 = stablehlo.divide %22, %45 : tensor<3x3x1x4xf32>
    %47 = stablehlo.multiply %13, %46 : tensor<3x3x1x4xf32>
    %48 = stablehlo.subtract %36, %47 : tensor<3x3x1x4xf32>
    %49 = stablehlo.slice %a24 [36:40] : (tensor<107xf32>) -> tensor<4xf32>
    %50 = stablehlo.slice %a25 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %51 = stablehlo.reshape %50 : (tensor<1xf32>) -> tensor<f32>
    %52 = stablehlo.broadcast_in_dim %51, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %53 = stablehlo.multiply %49, %52 : tensor<4xf32>
    %54 = stablehlo.slice %a25 [2:3] : (tensor<11xf32>) -> tensor<1xf32>
    %55 = stablehlo.reshape %54 : (tensor<1xf32>) -> tensor<f32>
    %56 = stablehlo.broadcast_in_dim %55, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %57 = stablehlo.slice %a25 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %58 = stablehlo.reshape %57 : (tensor<1xf32>) -> tensor<f32>
    %59 = stablehlo.broadcast_in_dim %58, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %60 = stablehlo.multiply %59, %a9 : tensor<4xf32>
    %61 = stablehlo.slice %a25 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %62 = stablehlo.reshape %61 : (tensor<1xf32>) -> tensor<f32>
    %63 = stablehlo.broadcast_in_dim %62, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %64 = stablehlo.multiply %63, %53 : tensor<4xf32>
    %65 = stablehlo.add %60, %64 : tensor<4xf32>
    %66 = stablehlo.slice %a25 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %67 = stablehlo.reshape %66 : (tensor<1xf32>) -> tensor<f32>
    %68 = stablehlo.broadcast_in_dim %67, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %69 = stablehlo.multiply %68, %a17 : tensor<4xf32>
    %70 = stablehlo.slice %a25 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %71 = stablehlo.reshape %70 : (tensor<1xf32>) -> tensor<f32>
    %72 = stablehlo.broadcast_in_dim %71, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %73 = stablehlo.multiply %53, %53 : tensor<4xf32>
    %74 = stablehlo.multiply %72, %73 : tensor<4xf32>
    %75 = stablehlo.add %69, %74 : tensor<4xf32>
    %76 = stablehlo.sqrt %75 : tensor<4xf32>
    %77 = stablehlo.slice %a25 [10:11] : (tensor<11xf32>) -> tensor<1xf32>
    %78 = stablehlo.reshape %77 : (tensor<1xf32>) -> tensor<f32>
    %79 = stablehlo.broadcast_in_dim %78, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %80 = stablehlo.divide %76, %79 : tensor<4xf32>
    %81 = stablehlo.slice %a25 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %82 = stablehlo.reshape %81 : (tensor<1xf32>) -> tensor<f32>
    %83 = stablehlo.broadcast_in_dim %82, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %84 = stablehlo.add %80, %83 : tensor<4xf32>
    %85 = stablehlo.divide %65, %84 : tensor<4xf32>
    %86 = stablehlo.multiply %56, %85 : tensor<4xf32>
    %87 = stablehlo.subtract %a1, %86 : tensor<4xf32>
    %88 = stablehlo.slice %a24 [40:44] : (tensor<107xf32>) -> tensor<4xf32>
    %89 = stablehlo.slice %a25 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %90 = stablehlo.reshape %89 : (tensor<1xf32>) -> tensor<f32>
    %91 = stablehlo.broadcast_in_dim %90, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %92 = stablehlo.multiply %88, %91 : tensor<4xf32>
    %93 = stablehlo.slice %a25 [2:3] : (tensor<11xf32>) -> tensor<1xf32>
    %94 = stablehlo.reshape %93 : (tensor<1xf32>) -> tensor<f32>
    %95 = stablehlo.broadcast_in_dim %94, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %96 = stablehlo.slice %a25 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %97 = stablehlo.reshape %96 : (tensor<1xf32>) -> tensor<f32>
    %98 = stablehlo.broadcast_in_dim %97, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %99 = stablehlo.multiply %98, %a10 : tensor<4xf32>
    %100 = stablehlo.slice %a25 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %101 = stablehlo.reshape %100 : (tensor<1xf32>) -> tensor<f32>
    %102 = stablehlo.broadcast_in_dim %101, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %103 = stablehlo.multiply %102, %92 : tensor<4xf32>
    %104 = stablehlo.add %99, %103 : tensor<4xf32>
    %105 = stablehlo.slice %a25 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %106 = stablehlo.reshape %105 : (tensor<1xf32>) -> tensor<f32>
    %107 = stablehlo.broadcast_in_dim %106, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %108 = stablehlo.multiply %107, %a18 : tensor<4xf32>
    %109 = stablehlo.slice %a25 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %110 = stablehlo.reshape %109 : (tensor<1xf32>) -> tensor<f32>
    %111 = stablehlo.broadcast_in_dim %110, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %112 = stablehlo.multiply %92, %92 : tensor<4xf32>
    %113 = stablehlo.multiply %111, %112 : tensor<4xf32>
    %114 = stablehlo.add %108, %113 : tensor<4xf32>
    %115 = stablehlo.sqrt %114 : tensor<4xf32>
    %116 = stablehlo.slice %a25 [10:11] : (tensor<11xf32>) -> tensor<1xf32>
    %117 = stablehlo.reshape %116 : (tensor<1xf32>) -> tensor<f32>
    %118 = stablehlo.broadcast_in_dim %117, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %119 = stablehlo.divide %115, %118 : tensor<4xf32>
    %120 = stablehlo.slice %a25 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %121 = stablehlo.reshape %120 : (tensor<1xf32>) -> tensor<f32>
    %122 = stablehlo.broadcast_in_dim %121, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %123 = stablehlo.add %119, %122 : tensor<4xf32>
    %124 = stablehlo.divide %104, %123 : tensor<4xf32>
    %125 = stablehlo.multiply %95, %124 : tensor<4xf32>
    %126 = stablehlo.subtract %a2, %125 : tensor<4xf32>
    %127 = stablehlo.slice %a24 [44:48] : (tensor<107xf32>) -> tensor<4xf32>
    %128 = stablehlo.slice %a25 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %129 = stablehlo.reshape %128 : (tensor<1xf32>) -> tensor<f32>
    %130 = stablehlo.broadcast_in_dim %129, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %131 = stablehlo.multiply %127, %130 : tensor<4xf32>
    %132 = stablehlo.slice %a25 [2:3] : (tensor<11xf32>) -> tensor<1xf32>
    %133 = stablehlo.reshape %132 : (tensor<1xf32>) -> tensor<f32>
    %134 = stablehlo.broadcast_in_dim %133, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %135 = stablehlo.slice %a25 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %136 = stablehlo.reshape %135 : (tensor<1xf32>) -> tensor<f32>
    %137 = stablehlo.broadcast_in_dim %136, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %138 = stablehlo.multiply %137, %a11 : tensor<4xf32>
    %139 = stablehlo.slice %a25 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %140 = stablehlo.reshape %139 : (tensor<1xf32>) -> tensor<f32>
    %141 = stablehlo.broadcast_in_dim %140, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %142 = stablehlo.multiply %141, %131 : tensor<4xf32>
    %143 = stablehlo.add %138, %142 : tensor<4xf32>
    %144 = stablehlo.slice %a25 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %145 = stablehlo.reshape %144 : (tensor<1xf32>) -> tensor<f32>
    %146 = stablehlo.broadcast_in_dim %145, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %147 = stablehlo.multiply %146, %a19 : tensor<4xf32>
    %148 = stablehlo.slice %a25 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %149 = stablehlo.reshape %148 : (tensor<1xf32>) -> tensor<f32>
    %150 = stablehlo.broadcast_in_dim %149, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %151 = stablehlo.multiply %131, %131 : tensor<4xf32>
    %152 = stablehlo.multiply %150, %151 : tensor<4xf32>
    %153 = stablehlo.add %147, %152 : tensor<4xf32>
    %154 = stablehlo.sqrt %153 : tensor<4xf32>
    %155 = stablehlo.slice %a25 [10:11] : (tensor<11xf32>) -> tensor<1xf32>
    %156 = stablehlo.reshape %155 : (tensor<1xf32>) -> tensor<f32>
    %157 = stablehlo.broadcast_in_dim %156, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %158 = stablehlo.divide %154, %157 : tensor<4xf32>
    %159 = stablehlo.slice %a25 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %160 = stablehlo.reshape %159 : (tensor<1xf32>) -> tensor<f32>
    %161 = stablehlo.broadcast_in_dim %160, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %162 = stablehlo.add %158, %161 : tensor<4xf32>
    %163 = stablehlo.divide %143, %162 : tensor<4xf32>
    %164 = stablehlo.multiply %134, %163 : tensor<4xf32>
    %165 = stablehlo.subtract %a3, %164 : tensor<4xf32>
    %166 = stablehlo.slice %a24 [48:96] : (tensor<107xf32>) -> tensor<48xf32>
    %167 = stablehlo.reshape %166 : (tensor<48xf32>) -> tensor<16x3xf32>
    %168 = stablehlo.slice %a25 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %169 = stablehlo.reshape %168 : (tensor<1xf32>) -> tensor<f32>
    %170 = stablehlo.broadcast_in_dim %169, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %171 = stablehlo.multiply %167, %170 : tensor<16x3xf32>
    %172 = stablehlo.slice %a25 [3:4] : (tensor<11xf32>) -> tensor<1xf32>
    %173 = stablehlo.reshape %172 : (tensor<1xf32>) -> tensor<f32>
    %174 = stablehlo.broadcast_in_dim %173, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %175 = stablehlo.multiply %174, %a4 : tensor<16x3xf32>
    %176 = stablehlo.add %171, %175 : tensor<16x3xf32>
    %177 = stablehlo.slice %a25 [2:3] : (tensor<11xf32>) -> tensor<1xf32>
    %178 = stablehlo.reshape %177 : (tensor<1xf32>) -> tensor<f32>
    %179 = stablehlo.broadcast_in_dim %178, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %180 = stablehlo.slice %a25 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %181 = stablehlo.reshape %180 : (tensor<1xf32>) -> tensor<f32>
    %182 = stablehlo.broadcast_in_dim %181, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %183 = stablehlo.multiply %182, %a12 : tensor<16x3xf32>
    %184 = stablehlo.slice %a25 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %185 = stablehlo.reshape %184 : (tensor<1xf32>) -> tensor<f32>
    %186 = stablehlo.broadcast_in_dim %185, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %187 = stablehlo.multiply %186, %176 : tensor<16x3xf32>
    %188 = stablehlo.add %183, %187 : tensor<16x3xf32>
    %189 = stablehlo.slice %a25 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %190 = stablehlo.reshape %189 : (tensor<1xf32>) -> tensor<f32>
    %191 = stablehlo.broadcast_in_dim %190, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %192 = stablehlo.multiply %191, %a20 : tensor<16x3xf32>
    %193 = stablehlo.slice %a25 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %194 = stablehlo.reshape %193 : (tensor<1xf32>) -> tensor<f32>
    %195 = stablehlo.broadcast_in_dim %194, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %196 = stablehlo.multiply %176, %176 : tensor<16x3xf32>
    %197 = stablehlo.multiply %195, %196 : tensor<16x3xf32>
    %198 = stablehlo.add %192, %197 : tensor<16x3xf32>
    %199 = stablehlo.slice %a25 [4:5] : (tensor<11xf32>) -> tensor<1xf32>
    %200 = stablehlo.reshape %199 : (tensor<1xf32>) -> tensor<f32>
    %201 = stablehlo.broadcast_in_dim %200, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %202 = stablehlo.multiply %a4, %201 : tensor<16x3xf32>
    %203 = stablehlo.sqrt %198 : tensor<16x3xf32>
    %204 = stablehlo.slice %a25 [10:11] : (tensor<11xf32>) -> tensor<1xf32>
    %205 = stablehlo.reshape %204 : (tensor<1xf32>) -> tensor<f32>
    %206 = stablehlo.broadcast_in_dim %205, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %207 = stablehlo.divide %203, %206 : tensor<16x3xf32>
    %208 = stablehlo.slice %a25 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %209 = stablehlo.reshape %208 : (tensor<1xf32>) -> tensor<f32>
    %210 = stablehlo.broadcast_in_dim %209, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %211 = stablehlo.add %207, %210 : tensor<16x3xf32>
    %212 = stablehlo.divide %188, %211 : tensor<16x3xf32>
    %213 = stablehlo.multiply %179, %212 : tensor<16x3xf32>
    %214 = stablehlo.subtract %202, %213 : tensor<16x3xf32>
    %215 = stablehlo.slice %a24 [96:99] : (tensor<107xf32>) -> tensor<3xf32>
    %216 = stablehlo.slice %a25 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %217 = stablehlo.reshape %216 : (tensor<1xf32>) -> tensor<f32>
    %218 = stablehlo.broadcast_in_dim %217, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %219 = stablehlo.multiply %215, %218 : tensor<3xf32>
    %220 = stablehlo.slice %a25 [2:3] : (tensor<11xf32>) -> tensor<1xf32>
    %221 = stablehlo.reshape %220 : (tensor<1xf32>) -> tensor<f32>
    %222 = stablehlo.broadcast_in_dim %221, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %223 = stablehlo.slice %a25 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %224 = stablehlo.reshape %223 : (tensor<1xf32>) -> tensor<f32>
    %225 = stablehlo.broadcast_in_dim %224, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %226 = stablehlo.multiply %225, %a13 : tensor<3xf32>
    %227 = stablehlo.slice %a25 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %228 = stablehlo.reshape %227 : (tensor<1xf32>) -> tensor<f32>
    %229 = stablehlo.broadcast_in_dim %228, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %230 = stablehlo.multiply %229, %219 : tensor<3xf32>
    %231 = stablehlo.add %226, %230 : tensor<3xf32>
    %232 = stablehlo.slice %a25 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %233 = stablehlo.reshape %232 : (tensor<1xf32>) -> tensor<f32>
    %234 = stablehlo.broadcast_in_dim %233, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %235 = stablehlo.multiply %234, %a21 : tensor<3xf32>
    %236 = stablehlo.slice %a25 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %237 = stablehlo.reshape %236 : (tensor<1xf32>) -> tensor<f32>
    %238 = stablehlo.broadcast_in_dim %237, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %239 = stablehlo.multiply %219, %219 : tensor<3xf32>
    %240 = stablehlo.multiply %238, %239 : tensor<3xf32>
    %241 = stablehlo.add %235, %240 : tensor<3xf32>
    %242 = stablehlo.sqrt %241 : tensor<3xf32>
    %243 = stablehlo.slice %a25 [10:11] : (tensor<11xf32>) -> tensor<1xf32>
    %244 = stablehlo.reshape %243 : (tensor<1xf32>) -> tensor<f32>
    %245 = stablehlo.broadcast_in_dim %244, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %246 = stablehlo.divide %242, %245 : tensor<3xf32>
    %247 = stablehlo.slice %a25 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %248 = stablehlo.reshape %247 : (tensor<1xf32>) -> tensor<f32>
    %249 = stablehlo.broadcast_in_dim %248, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %250 = stablehlo.add %246, %249 : tensor<3xf32>
    %251 = stablehlo.divide %231, %250 : tensor<3xf32>
    %252 = stablehlo.multiply %222, %251 : tensor<3xf32>
    %253 = stablehlo.subtract %a5, %252 : tensor<3xf32>
    %254 = stablehlo.slice %a24 [99:103] : (tensor<107xf32>) -> tensor<4xf32>
    %255 = stablehlo.constant dense<8.999999762e-01> : tensor<f32>
    %256 = stablehlo.broadcast_in_dim %255, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %257 = stablehlo.multiply %a6, %256 : tensor<4xf32>
    %258 = stablehlo.slice %a25 [0:1] : (tensor<11xf32>) -> tensor<1xf32>
    %259 = stablehlo.reshape %258 : (tensor<1xf32>) -> tensor<f32>
    %260 = stablehlo.broadcast_in_dim %259, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %261 = stablehlo.multiply %254, %260 : tensor<4xf32>
    %262 = stablehlo.constant dense<1.000000238e-01> : tensor<f32>
    %263 = stablehlo.broadcast_in_dim %262, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %264 = stablehlo.multiply %261, %263 : tensor<4xf32>
    %265 = stablehlo.add %257, %264 : tensor<4xf32>
    %266 = stablehlo.slice %a24 [103:107] : (tensor<107xf32>) -> tensor<4xf32>
    %267 = stablehlo.broadcast_in_dim %255, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %268 = stablehlo.multiply %a7, %267 : tensor<4xf32>
    %269 = stablehlo.slice %a25 [0:1] : (tensor<11xf32>) -> tensor<1xf32>
    %270 = stablehlo.reshape %269 : (tensor<1xf32>) -> tensor<f32>
    %271 = stablehlo.broadcast_in_dim %270, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %272 = stablehlo.multiply %266, %271 : tensor<4xf32>
    %273 = stablehlo.broadcast_in_dim %262, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %274 = stablehlo.multiply %272, %273 : tensor<4xf32>
    %275 = stablehlo.add %268, %274 : tensor<4xf32>
    return %48, %87, %126, %165, %214, %253, %265, %275, %22, %65, %104, %143, %188, %231, %a14, %a15, %32, %75, %114, %153, %198, %241, %a22, %a23 : tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>
  }
}
