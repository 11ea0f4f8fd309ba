import Capture
import MediaCore
import RoomKit
import Testing
import Threading

@testable import RoomKit
@testable import V4L2Capture

@Suite("Slates of a turned camera", .timeLimit(.minutes(1)))
struct TaggedSlateTests {
    // A slate was upright and untagged, so that its size was another one: two changes of size in each outage.
    @Test("A slate has the size and the tag of the pictures", arguments: VideoRotation.allCases, [false, true])
    func tagged(rotation: VideoRotation, tagsOrientation: Bool) async throws {
        var script = CameraScript(events: CameraScript.steady(20_000))
        script.intervalMilliseconds = 1
        let system = ScriptedSystem(script)
        var transform = CameraTransform()
        transform.isMirrored = true
        transform.tagsOrientation = tagsOrientation
        let tracker = StaticOrientationTracker(rotation)
        let source = CameraSource(device: testDevice, request: VideoFormatRequest(), system: system) {
            [transform] in CameraSource.makeConverter(transform, tracker)
        }
        let sink = RecordingSink()
        source.sink = sink
        try await source.startCapture()
        sink.waitForFrames(3)
        system.plug([:])
        script.isUnplugged.withLock { $0 = true }
        sink.waitForSlates(1)
        await source.stopCapture()
        let picture = try #require(sink.received.withLock { $0.lastPicture })
        let slate = try #require(sink.received.withLock { $0.lastSlate })
        #expect(slate.dimensions == picture.dimensions && slate.uprightDimensions == picture.uprightDimensions)
        #expect(slate.rotation == picture.rotation && slate.isMirrored == picture.isMirrored)
        #expect(picture.rotation == (tagsOrientation ? rotation : .none) && picture.isMirrored == tagsOrientation)
    }
}
