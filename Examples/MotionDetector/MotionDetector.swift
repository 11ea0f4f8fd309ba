import ArgumentParser
import RoomKit

/// Compares every frame of a source with the one before, and prints when something moves.
///
///     MotionDetector [camera|pattern|still [seconds]]
@main
struct MotionDetector: AsyncParsableCommand {
    @Argument(help: "The source: camera, pattern, or still for a picture that never changes.")
    var kind = "pattern"

    @Argument(help: "How long to look.")
    var seconds = 10

    func run() async throws {
        let source = try makeSource()
        try await source.startCapture()
        // Looks at every frame. If this were slower than the source, it would miss frames and not lag behind.
        let watch = Task {
            var (frames, moving) = (0, 0)
            var former: VideoFrame?
            for await frame in source.frames {
                if let former, Self.difference(frame, former) > 0.5 { moving += 1 }
                (former, frames) = (frame, frames + 1)
            }
            return (frames, moving)
        }
        try await Task.sleep(for: .seconds(seconds))
        watch.cancel()
        let (frames, moving) = await watch.value
        await source.stopCapture()
        print("\(frames) frames, \(moving) with motion.")
    }

    /// The mean difference of the two frames' brightness, of one pixel in 16.
    static func difference(_ frame: VideoFrame, _ former: VideoFrame) -> Double {
        frame.buffer.withPlanes { new, _, _ in
            former.buffer.withPlanes { old, _, _ in
                let pixels = stride(from: 0, to: min(new.count, old.count), by: 16)
                return Double(pixels.reduce(0) { $0 + abs(Int(new[$1]) - Int(old[$1])) }) / Double(new.count / 16)
            }
        }
    }

    func makeSource() throws -> any VideoCapturer {
        switch kind {
        case "camera": return CameraSource(device: try CameraSource.defaultDevice(), preset: .vga)
        case "still":
            return PacedSource(dimensions: .cif, frameRate: FrameRate(30)) { buffer, _ in
                buffer.withMutablePlanes { luma, _, _ in luma.update(repeating: 90) }
                return true
            }
        default: return PatternSource()
        }
    }
}
