import MediaCore
import Synchronization
import Testing
import Threading

@Suite("Bounded queue", .timeLimit(.minutes(1)))
struct BoundedQueueTests {
    @Test("A full queue refuses elements, and gives out its own in order")
    func depth() {
        let queue = BoundedQueue<Int>(depth: 2)
        #expect([queue.put(1), queue.put(2), queue.put(3)] == [true, true, false])
        #expect(queue.take() == 1)
        #expect(queue.put(4))
        #expect([queue.take(), queue.take()] == [2, 4])
    }

    @Test("Closed, it refuses everything and gives what waits, then ends every take")
    func closing() {
        let queue = BoundedQueue<Int>(depth: 2)
        #expect(queue.put(1))
        queue.close()
        #expect(!queue.put(2))
        #expect(queue.take() == 1)
        #expect(queue.take() == nil)
    }

    @Test("Closing ends a take that waits")
    func closingWakes() throws {
        let queue = BoundedQueue<Int>(depth: 2)
        let thread = try WorkerThread(name: "taker") { while queue.take() != nil {} }
        queue.close()
        thread.join()
    }

    @Test("Every element is either taken or refused")
    func nothingVanishes() throws {
        let queue = BoundedQueue<Int>(depth: 3)
        let taken = Monitor<[Int]>([])
        let thread = try WorkerThread(name: "taker") {
            while let element = queue.take() { taken.withLock { $0.append(element) } }
        }
        let accepted = (0..<20_000).filter { queue.put($0) }
        queue.close()
        thread.join()
        #expect(taken.withLock { $0 } == accepted)
    }
}

@Suite("Monitor", .timeLimit(.minutes(1)))
struct MonitorTests {
    @Test("A wait ends at its deadline")
    func deadline() {
        let monitor = Monitor(0)
        let deadline = MonotonicClock.now + .milliseconds(10)
        #expect(monitor.wait(until: deadline) { $0 > 0 ? $0 : nil } == nil)
        #expect(MonotonicClock.now >= deadline)
    }

    @Test("A change wakes the one who waits for it")
    func change() throws {
        let monitor = Monitor(0)
        let thread = try WorkerThread(name: "changer") { monitor.change { $0 = 5 } }
        #expect(monitor.wait { $0 > 0 ? $0 : nil } == 5)
        thread.join()
    }
}

@Suite("Pools", .timeLimit(.minutes(1)))
struct PoolTests {
    @Test("A buffer comes back once nobody holds it, and not before")
    func reuse() {
        let pool = VideoBufferPool()
        let size = Dimensions(width: 64, height: 64)
        let first = pool.take(size)
        let second = pool.take(size)
        #expect(first !== second)
        let address = ObjectIdentifier(first)
        _ = consume first
        #expect(ObjectIdentifier(pool.take(size)) == address)
    }

    @Test("A free buffer of another size is replaced, so that a size change does not grow the pool")
    func sizeChange() {
        let pool = VideoBufferPool(limit: 2)
        for side in 1...100 {
            #expect(pool.take(Dimensions(width: side, height: side)).dimensions.width == side)
        }
    }

    @Test("Message buffers have room for what was asked", arguments: [0, 1, 1024, 1025, 16_000, 4_000_000, 40_000_000])
    func packetSizes(count: Int) {
        let packet = PacketBufferPool().take(count: count)
        #expect(packet.count == count && packet.capacity >= count)
    }

    @Test("Two threads never hold the same buffer")
    func exclusive() throws {
        let pool = PacketBufferPool(limit: 4)
        let clashes = Atomic(0)
        let threads = try (0..<4).map { number in
            try WorkerThread(name: "pool-\(number)") {
                for _ in 0..<5000 {
                    let packet = pool.take(count: 8)
                    packet.withMutableBytes { $0.storeBytes(of: UInt64(number), as: UInt64.self) }
                    let read = packet.withBytes { bytes in bytes.withUnsafeBytes { $0.load(as: UInt64.self) } }
                    if read != UInt64(number) { clashes.add(1, ordering: .relaxed) }
                }
            }
        }
        for thread in threads { thread.join() }
        let count = clashes.load(ordering: .relaxed)
        #expect(count == 0)
    }
}

@Suite("Worker thread", .timeLimit(.minutes(1)))
struct WorkerThreadTests {
    // A new thread may be given the handle of one that was joined; joining that again from the new one trapped.
    @Test("A thread can join one that ended before it began, whatever their handles")
    func handleUsedAgain() throws {
        for _ in 0..<50 {
            let former = try WorkerThread(name: "former") {}
            former.join()
            try WorkerThread(name: "later") { former.join() }.join()
        }
    }
}
