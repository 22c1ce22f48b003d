module @small_update_adam_resident {
  func.func public @main(%a0: tensor<3x3x1x4xf32> {tf.aliasing_output = 0 : i32}, %a1: tensor<4xf32> {tf.aliasing_output = 1 : i32}, %a2: tensor<4xf32> {tf.aliasing_output = 2 : i32}, %a3: tensor<4xf32> {tf.aliasing_output = 3 : i32}, %a4: tensor<16x3xf32> {tf.aliasing_output = 4 : i32}, %a5: tensor<3xf32> {tf.aliasing_output = 5 : i32}, %a6: tensor<4xf32> {tf.aliasing_output = 6 : i32}, %a7: tensor<4xf32> {tf.aliasing_output = 7 : i32}, %a8: tensor<3x3x1x4xf32> {tf.aliasing_output = 8 : i32}, %a9: tensor<4xf32> {tf.aliasing_output = 9 : i32}, %a10: tensor<4xf32> {tf.aliasing_output = 10 : i32}, %a11: tensor<4xf32> {tf.aliasing_output = 11 : i32}, %a12: tensor<16x3xf32> {tf.aliasing_output = 12 : i32}, %a13: tensor<3xf32> {tf.aliasing_output = 13 : i32}, %a14: tensor<4xf32> {tf.aliasing_output = 14 : i32}, %a15: tensor<4xf32> {tf.aliasing_output = 15 : i32}, %a16: tensor<3x3x1x4xf32> {tf.aliasing_output = 16 : i32}, %a17: tensor<4xf32> {tf.aliasing_output = 17 : i32}, %a18: tensor<4xf32> {tf.aliasing_output = 18 : i32}, %a19: tensor<4xf32> {tf.aliasing_output = 19 : i32}, %a20: tensor<16x3xf32> {tf.aliasing_output = 20 : i32}, %a21: tensor<3xf32> {tf.aliasing_output = 21 : i32}, %a22: tensor<4xf32> {tf.aliasing_output = 22 : i32}, %a23: tensor<4xf32> {tf.aliasing_output = 23 : i32}, %a24: tensor<3x3x1x4xf32> {tf.aliasing_output = 24 : i32}, %a25: tensor<4xf32> {tf.aliasing_output = 25 : i32}, %a26: tensor<4xf32> {tf.aliasing_output = 26 : i32}, %a27: tensor<4xf32> {tf.aliasing_output = 27 : i32}, %a28: tensor<16x3xf32> {tf.aliasing_output = 28 : i32}, %a29: tensor<3xf32> {tf.aliasing_output = 29 : i32}, %a30: tensor<4xf32> {tf.aliasing_output = 30 : i32}, %a31: tensor<4xf32> {tf.aliasing_output = 31 : i32}, %a32: tensor<11xf32>) -> (tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>) {
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
    %47 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %48 = stablehlo.multiply %a25, %47 : tensor<4xf32>
    %49 = stablehlo.slice %a32 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %50 = stablehlo.reshape %49 : (tensor<1xf32>) -> tensor<f32>
    %51 = stablehlo.broadcast_in_dim %50, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %52 = stablehlo.slice %a32 [4:5] : (tensor<11xf32>) -> tensor<1xf32>
    %53 = stablehlo.reshape %52 : (tensor<1xf32>) -> tensor<f32>
    %54 = stablehlo.broadcast_in_dim %53, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %55 = stablehlo.multiply %54, %a9 : tensor<4xf32>
    %56 = stablehlo.slice %a32 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %57 = stablehlo.reshape %56 : (tensor<1xf32>) -> tensor<f32>
    %58 = stablehlo.broadcast_in_dim %57, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %59 = stablehlo.multiply %58, %48 : tensor<4xf32>
    %60 = stablehlo.add %55, %59 : tensor<4xf32>
    %61 = stablehlo.slice %a32 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %62 = stablehlo.reshape %61 : (tensor<1xf32>) -> tensor<f32>
    %63 = stablehlo.broadcast_in_dim %62, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %64 = stablehlo.multiply %63, %a17 : tensor<4xf32>
    %65 = stablehlo.slice %a32 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %66 = stablehlo.reshape %65 : (tensor<1xf32>) -> tensor<f32>
    %67 = stablehlo.broadcast_in_dim %66, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %68 = stablehlo.multiply %48, %48 : tensor<4xf32>
    %69 = stablehlo.multiply %67, %68 : tensor<4xf32>
    %70 = stablehlo.add %64, %69 : tensor<4xf32>
    %71 = stablehlo.sqrt %70 : tensor<4xf32>
    %72 = stablehlo.slice %a32 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %73 = stablehlo.reshape %72 : (tensor<1xf32>) -> tensor<f32>
    %74 = stablehlo.broadcast_in_dim %73, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %75 = stablehlo.divide %71, %74 : tensor<4xf32>
    %76 = stablehlo.slice %a32 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %77 = stablehlo.reshape %76 : (tensor<1xf32>) -> tensor<f32>
    %78 = stablehlo.broadcast_in_dim %77, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %79 = stablehlo.add %75, %78 : tensor<4xf32>
    %80 = stablehlo.divide %60, %79 : tensor<4xf32>
    %81 = stablehlo.multiply %51, %80 : tensor<4xf32>
    %82 = stablehlo.subtract %a1, %81 : tensor<4xf32>
    %83 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %84 = stablehlo.multiply %a26, %83 : tensor<4xf32>
    %85 = stablehlo.slice %a32 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %86 = stablehlo.reshape %85 : (tensor<1xf32>) -> tensor<f32>
    %87 = stablehlo.broadcast_in_dim %86, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %88 = stablehlo.slice %a32 [4:5] : (tensor<11xf32>) -> tensor<1xf32>
    %89 = stablehlo.reshape %88 : (tensor<1xf32>) -> tensor<f32>
    %90 = stablehlo.broadcast_in_dim %89, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %91 = stablehlo.multiply %90, %a10 : tensor<4xf32>
    %92 = stablehlo.slice %a32 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %93 = stablehlo.reshape %92 : (tensor<1xf32>) -> tensor<f32>
    %94 = stablehlo.broadcast_in_dim %93, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %95 = stablehlo.multiply %94, %84 : tensor<4xf32>
    %96 = stablehlo.add %91, %95 : tensor<4xf32>
    %97 = stablehlo.slice %a32 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %98 = stablehlo.reshape %97 : (tensor<1xf32>) -> tensor<f32>
    %99 = stablehlo.broadcast_in_dim %98, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %100 = stablehlo.multiply %99, %a18 : tensor<4xf32>
    %101 = stablehlo.slice %a32 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %102 = stablehlo.reshape %101 : (tensor<1xf32>) -> tensor<f32>
    %103 = stablehlo.broadcast_in_dim %102, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %104 = stablehlo.multiply %84, %84 : tensor<4xf32>
    %105 = stablehlo.multiply %103, %104 : tensor<4xf32>
    %106 = stablehlo.add %100, %105 : tensor<4xf32>
    %107 = stablehlo.sqrt %106 : tensor<4xf32>
    %108 = stablehlo.slice %a32 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %109 = stablehlo.reshape %108 : (tensor<1xf32>) -> tensor<f32>
    %110 = stablehlo.broadcast_in_dim %109, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %111 = stablehlo.divide %107, %110 : tensor<4xf32>
    %112 = stablehlo.slice %a32 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %113 = stablehlo.reshape %112 : (tensor<1xf32>) -> tensor<f32>
    %114 = stablehlo.broadcast_in_dim %113, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %115 = stablehlo.add %111, %114 : tensor<4xf32>
    %116 = stablehlo.divide %96, %115 : tensor<4xf32>
    %117 = stablehlo.multiply %87, %116 : tensor<4xf32>
    %118 = stablehlo.subtract %a2, %117 : tensor<4xf32>
    %119 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %120 = stablehlo.multiply %a27, %119 : tensor<4xf32>
    %121 = stablehlo.slice %a32 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %122 = stablehlo.reshape %121 : (tensor<1xf32>) -> tensor<f32>
    %123 = stablehlo.broadcast_in_dim %122, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %124 = stablehlo.slice %a32 [4:5] : (tensor<11xf32>) -> tensor<1xf32>
    %125 = stablehlo.reshape %124 : (tensor<1xf32>) -> tensor<f32>
    %126 = stablehlo.broadcast_in_dim %125, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %127 = stablehlo.multiply %126, %a11 : tensor<4xf32>
    %128 = stablehlo.slice %a32 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %129 = stablehlo.reshape %128 : (tensor<1xf32>) -> tensor<f32>
    %130 = stablehlo.broadcast_in_dim %129, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %131 = stablehlo.multiply %130, %120 : tensor<4xf32>
    %132 = stablehlo.add %127, %131 : tensor<4xf32>
    %133 = stablehlo.slice %a32 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %134 = stablehlo.reshape %133 : (tensor<1xf32>) -> tensor<f32>
    %135 = stablehlo.broadcast_in_dim %134, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %136 = stablehlo.multiply %135, %a19 : tensor<4xf32>
    %137 = stablehlo.slice %a32 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %138 = stablehlo.reshape %137 : (tensor<1xf32>) -> tensor<f32>
    %139 = stablehlo.broadcast_in_dim %138, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %140 = stablehlo.multiply %120, %120 : tensor<4xf32>
    %141 = stablehlo.multiply %139, %140 : tensor<4xf32>
    %142 = stablehlo.add %136, %141 : tensor<4xf32>
    %143 = stablehlo.sqrt %142 : tensor<4xf32>
    %144 = stablehlo.slice %a32 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %145 = stablehlo.reshape %144 : (tensor<1xf32>) -> tensor<f32>
    %146 = stablehlo.broadcast_in_dim %145, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %147 = stablehlo.divide %143, %146 : tensor<4xf32>
    %148 = stablehlo.slice %a32 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %149 = stablehlo.reshape %148 : (tensor<1xf32>) -> tensor<f32>
    %150 = stablehlo.broadcast_in_dim %149, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %151 = stablehlo.add %147, %150 : tensor<4xf32>
    %152 = stablehlo.divide %132, %151 : tensor<4xf32>
    %153 = stablehlo.multiply %123, %152 : tensor<4xf32>
    %154 = stablehlo.subtract %a3, %153 : tensor<4xf32>
    %155 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %156 = stablehlo.multiply %a28, %155 : tensor<16x3xf32>
    %157 = stablehlo.slice %a32 [2:3] : (tensor<11xf32>) -> tensor<1xf32>
    %158 = stablehlo.reshape %157 : (tensor<1xf32>) -> tensor<f32>
    %159 = stablehlo.broadcast_in_dim %158, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %160 = stablehlo.multiply %159, %a4 : tensor<16x3xf32>
    %161 = stablehlo.add %156, %160 : tensor<16x3xf32>
    %162 = stablehlo.slice %a32 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %163 = stablehlo.reshape %162 : (tensor<1xf32>) -> tensor<f32>
    %164 = stablehlo.broadcast_in_dim %163, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %165 = stablehlo.slice %a32 [4:5] : (tensor<11xf32>) -> tensor<1xf32>
    %166 = stablehlo.reshape %165 : (tensor<1xf32>) -> tensor<f32>
    %167 = stablehlo.broadcast_in_dim %166, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %168 = stablehlo.multiply %167, %a12 : tensor<16x3xf32>
    %169 = stablehlo.slice %a32 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %170 = stablehlo.reshape %169 : (tensor<1xf32>) -> tensor<f32>
    %171 = stablehlo.broadcast_in_dim %170, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %172 = stablehlo.multiply %171, %161 : tensor<16x3xf32>
    %173 = stablehlo.add %168, %172 : tensor<16x3xf32>
    %174 = stablehlo.slice %a32 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %175 = stablehlo.reshape %174 : (tensor<1xf32>) -> tensor<f32>
    %176 = stablehlo.broadcast_in_dim %175, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %177 = stablehlo.multiply %176, %a20 : tensor<16x3xf32>
    %178 = stablehlo.slice %a32 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %179 = stablehlo.reshape %178 : (tensor<1xf32>) -> tensor<f32>
    %180 = stablehlo.broadcast_in_dim %179, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %181 = stablehlo.multiply %161, %161 : tensor<16x3xf32>
    %182 = stablehlo.multiply %180, %181 : tensor<16x3xf32>
    %183 = stablehlo.add %177, %182 : tensor<16x3xf32>
    %184 = stablehlo.slice %a32 [3:4] : (tensor<11xf32>) -> tensor<1xf32>
    %185 = stablehlo.reshape %184 : (tensor<1xf32>) -> tensor<f32>
    %186 = stablehlo.broadcast_in_dim %185, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %187 = stablehlo.multiply %a4, %186 : tensor<16x3xf32>
    %188 = stablehlo.sqrt %183 : tensor<16x3xf32>
    %189 = stablehlo.slice %a32 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %190 = stablehlo.reshape %189 : (tensor<1xf32>) -> tensor<f32>
    %191 = stablehlo.broadcast_in_dim %190, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %192 = stablehlo.divide %188, %191 : tensor<16x3xf32>
    %193 = stablehlo.slice %a32 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %194 = stablehlo.reshape %193 : (tensor<1xf32>) -> tensor<f32>
    %195 = stablehlo.broadcast_in_dim %194, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %196 = stablehlo.add %192, %195 : tensor<16x3xf32>
    %197 = stablehlo.divide %173, %196 : tensor<16x3xf32>
    %198 = stablehlo.multiply %164, %197 : tensor<16x3xf32>
    %199 = stablehlo.subtract %187, %198 : tensor<16x3xf32>
    %200 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %201 = stablehlo.multiply %a29, %200 : tensor<3xf32>
    %202 = stablehlo.slice %a32 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %203 = stablehlo.reshape %202 : (tensor<1xf32>) -> tensor<f32>
    %204 = stablehlo.broadcast_in_dim %203, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %205 = stablehlo.slice %a32 [4:5] : (tensor<11xf32>) -> tensor<1xf32>
    %206 = stablehlo.reshape %205 : (tensor<1xf32>) -> tensor<f32>
    %207 = stablehlo.broadcast_in_dim %206, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %208 = stablehlo.multiply %207, %a13 : tensor<3xf32>
    %209 = stablehlo.slice %a32 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %210 = stablehlo.reshape %209 : (tensor<1xf32>) -> tensor<f32>
    %211 = stablehlo.broadcast_in_dim %210, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %212 = stablehlo.multiply %211, %201 : tensor<3xf32>
    %213 = stablehlo.add %208, %212 : tensor<3xf32>
    %214 = stablehlo.slice %a32 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %215 = stablehlo.reshape %214 : (tensor<1xf32>) -> tensor<f32>
    %216 = stablehlo.broadcast_in_dim %215, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %217 = stablehlo.multiply %216, %a21 : tensor<3xf32>
    %218 = stablehlo.slice %a32 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %219 = stablehlo.reshape %218 : (tensor<1xf32>) -> tensor<f32>
    %220 = stablehlo.broadcast_in_dim %219, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %221 = stablehlo.multiply %201, %201 : tensor<3xf32>
    %222 = stablehlo.multiply %220, %221 : tensor<3xf32>
    %223 = stablehlo.add %217, %222 : tensor<3xf32>
    %224 = stablehlo.sqrt %223 : tensor<3xf32>
    %225 = stablehlo.slice %a32 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %226 = stablehlo.reshape %225 : (tensor<1xf32>) -> tensor<f32>
    %227 = stablehlo.broadcast_in_dim %226, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %228 = stablehlo.divide %224, %227 : tensor<3xf32>
    %229 = stablehlo.slice %a32 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %230 = stablehlo.reshape %229 : (tensor<1xf32>) -> tensor<f32>
    %231 = stablehlo.broadcast_in_dim %230, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %232 = stablehlo.add %228, %231 : tensor<3xf32>
    %233 = stablehlo.divide %213, %232 : tensor<3xf32>
    %234 = stablehlo.multiply %204, %233 : tensor<3xf32>
    %235 = stablehlo.subtract %a5, %234 : tensor<3xf32>
    %236 = stablehlo.slice %a32 [0:1] : (tensor<11xf32>) -> tensor<1xf32>
    %237 = stablehlo.reshape %236 : (tensor<1xf32>) -> tensor<f32>
    %238 = stablehlo.broadcast_in_dim %237, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %239 = stablehlo.multiply %a30, %238 : tensor<4xf32>
    %240 = stablehlo.constant dense<8.999999762e-01> : tensor<f32>
    %241 = stablehlo.broadcast_in_dim %240, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %242 = stablehlo.multiply %a6, %241 : tensor<4xf32>
    %243 = stablehlo.constant dense<1.000000238e-01> : tensor<f32>
    %244 = stablehlo.broadcast_in_dim %243, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %245 = stablehlo.multiply %239, %244 : tensor<4xf32>
    %246 = stablehlo.add %242, %245 : tensor<4xf32>
    %247 = stablehlo.slice %a32 [0:1] : (tensor<11xf32>) -> tensor<1xf32>
    %248 = stablehlo.reshape %247 : (tensor<1xf32>) -> tensor<f32>
    %249 = stablehlo.broadcast_in_dim %248, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %250 = stablehlo.multiply %a31, %249 : tensor<4xf32>
    %251 = stablehlo.broadcast_in_dim %240, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %252 = stablehlo.multiply %a7, %251 : tensor<4xf32>
    %253 = stablehlo.broadcast_in_dim %243, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %254 = stablehlo.multiply %250, %253 : tensor<4xf32>
    %255 = stablehlo.add %252, %254 : tensor<4xf32>
    %256 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
    %257 = stablehlo.broadcast_in_dim %256, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %258 = stablehlo.broadcast_in_dim %256, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %259 = stablehlo.broadcast_in_dim %256, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %260 = stablehlo.broadcast_in_dim %256, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %261 = stablehlo.broadcast_in_dim %256, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %262 = stablehlo.broadcast_in_dim %256, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %263 = stablehlo.broadcast_in_dim %256, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %264 = stablehlo.broadcast_in_dim %256, dims = [] : (tensor<f32>) -> tensor<4xf32>
    return %46, %82, %118, %154, %199, %235, %246, %255, %20, %60, %96, %132, %173, %213, %a14, %a15, %30, %70, %106, %142, %183, %223, %a22, %a23, %257, %258, %259, %260, %261, %262, %263, %264 : tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>
  }
}
