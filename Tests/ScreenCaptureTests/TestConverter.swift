import MediaCore
import Threading
import VideoProcessing

@testable import ScreenCapture

/// Converts as the real converter does, and notes the areas that were converted.
final class TestConverter: ScreenConverter {
    private let converter = ScreenPictureConverter()
    private let note: @Sendable (PixelArea) -> Void
    private let noteMade: @Sendable (VideoBuffer) -> Void

    init(
        note: @escaping @Sendable (PixelArea) -> Void = { _ in },
        noteMade: @escaping @Sendable (VideoBuffer) -> Void = { _ in }
    ) {
        self.noteMade = noteMade
        self.note = note
    }

    func makePicture(_ dimensions: Dimensions, from previous: VideoBuffer?) -> VideoBuffer {
        let picture = converter.makePicture(dimensions, from: previous)
        noteMade(picture)
        return picture
    }

    func convert(_ pixels: RawSpan, of area: PixelArea, into picture: VideoBuffer) {
        note(area)
        converter.convert(pixels, of: area, into: picture)
    }
}
