import ArgumentParser
import CLuma
import RoomKit

/// Hands the planes of frames to a C function, without a copy.
///
///     PlanesToC [frames]
@main
struct PlanesToC: AsyncParsableCommand {
    @Argument(help: "How many frames to look at.")
    var count = 30

    func run() async throws {
        // Any source will do, such as a camera: `try CameraSource(device: CameraSource.defaultDevice())`.
        let source = PatternSource()
        var (frames, sum) = (0, 0.0)
        for await frame in source.frames {
            guard frames < count else { break }
            sum += Self.brightness(of: frame)
            frames += 1
        }
        guard frames > 0 else { return print("No frame.") }
        print("\(frames) frames, mean brightness \(Int((sum / Double(frames)).rounded())).")
    }

    /// The mean brightness of a frame, from 0 to 255.
    ///
    /// The pointer is valid only inside the closure. C code that needs the pixels for longer keeps the frame instead.
    static func brightness(of frame: VideoFrame) -> Double {
        frame.buffer.withPlanes { luma, _, _ in
            unsafe luma.withUnsafeBufferPointer { plane in
                let (stride, size) = (frame.buffer.lumaStride, frame.dimensions)
                return unsafe luma_mean(plane.baseAddress, stride, size.width, size.height)
            }
        }
    }
}
