import CSDL
import RoomKit

/// A picture of one size where SDL can draw it; confine to the main thread.
@safe final class PictureTexture {
    /// The size of the pictures.
    let dimensions: Dimensions
    private let window: ViewWindow
    private let texture: OpaquePointer

    /// Makes room for pictures of `dimensions`; `nil` if there is none.
    init?(_ dimensions: Dimensions, in window: ViewWindow) {
        let texture = unsafe SDL_CreateTexture(
            window.renderer,
            SDL_PIXELFORMAT_IYUV.rawValue,
            Int32(SDL_TEXTUREACCESS_STREAMING.rawValue),
            Int32(dimensions.width),
            Int32(dimensions.height)
        )
        guard let texture = unsafe texture else { return nil }
        unsafe self.texture = texture
        self.dimensions = dimensions
        self.window = window
    }

    deinit {
        unsafe SDL_DestroyTexture(texture)
    }

    /// Copies a picture of the texture's size into it.
    func upload(_ buffer: VideoBuffer) {
        buffer.withPlanes { luma, chromaU, chromaV in
            unsafe luma.withUnsafeBufferPointer { luma in
                unsafe chromaU.withUnsafeBufferPointer { chromaU in
                    unsafe chromaV.withUnsafeBufferPointer { chromaV in
                        _ = unsafe SDL_UpdateYUVTexture(
                            texture,
                            nil,
                            luma.baseAddress,
                            Int32(buffer.lumaStride),
                            chromaU.baseAddress,
                            Int32(buffer.chromaStride),
                            chromaV.baseAddress,
                            Int32(buffer.chromaStride)
                        )
                    }
                }
            }
        }
    }

    /// Draws the picture, scaled, at a place of the window.
    func draw(at area: PixelArea) {
        var target = SDL_Rect(area)
        unsafe SDL_RenderCopy(window.renderer, texture, nil, &target)
    }
}

extension SDL_Rect {
    /// An area of the window.
    init(_ area: PixelArea) {
        self.init(
            x: Int32(area.column),
            y: Int32(area.row),
            w: Int32(area.dimensions.width),
            h: Int32(area.dimensions.height)
        )
    }
}
